/* Matches setups with posted receivers, and ids with the senders that hold them. */
#include "partitioned/matching/matching.h"

#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/matching/answers.h"
#include "partitioned/matching/control.h"
#include "partitioned/process/world.h"
#include "partitioned/tags/ids.h"

/* Of this rank's senders: ids with tags, and further ones without, of which there are always enough. */
static eb_ids tagged_ids, further_ids;
static eb_setup_handler *take_setup;
static eb_refusal_handler *take_refusal;

typedef struct unexpected_setup {
  struct unexpected_setup *next;
  eb_setup setup;
} unexpected_setup;

/* The two queues of one communicator, source and tag. One of them is empty; kept when both are, because the next
 * request of the tag is likely. */
typedef struct endpoint {
  struct endpoint *next; /* in its bucket */
  uint64_t identity;
  int source, tag;
  eb_match *posted, **last_posted;
  unexpected_setup *unexpected, **last_unexpected;
} endpoint;

static struct {
  endpoint **buckets;
  size_t num_buckets, num_endpoints; /* a power of two */
} table;

static atomic_int num_posted;

static endpoint **bucket_of(uint64_t identity, int source, int tag) {
  uint64_t hash = identity ^ ((uint64_t)(uint32_t)source << 32 | (uint32_t)tag);
  hash *= UINT64_C(0x9E3779B97F4A7C15);
  return &table.buckets[hash >> 32 & (table.num_buckets - 1)];
}

static bool grow(void) {
  const size_t num_old = table.num_buckets;
  endpoint **const old = table.buckets, **const larger = calloc(num_old ? 4 * num_old : 64, sizeof *larger);
  if (!larger) return num_old > 0; /* longer chains: slower, not wrong */
  table.buckets = larger;
  table.num_buckets = num_old ? 4 * num_old : 64;
  for (size_t b = 0; b < num_old; b++) {
    for (endpoint *at = old[b]; at;) {
      endpoint *const next = at->next, **const bucket = bucket_of(at->identity, at->source, at->tag);
      at->next = *bucket;
      *bucket = at;
      at = next;
    }
  }
  free(old);
  return true;
}

/* Made where there is none yet; NULL when memory is short. */
static endpoint *endpoint_of(uint64_t identity, int source, int tag) {
  if (table.num_endpoints >= table.num_buckets && !grow()) return NULL;
  endpoint **const bucket = bucket_of(identity, source, tag);
  for (endpoint *at = *bucket; at; at = at->next)
    if (at->identity == identity && at->source == source && at->tag == tag) return at;
  endpoint *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  *made = (endpoint){.next = *bucket, .identity = identity, .source = source, .tag = tag};
  made->last_posted = &made->posted;
  made->last_unexpected = &made->unexpected;
  *bucket = made;
  table.num_endpoints++;
  return made;
}

void eb_matching_begin(eb_setup_handler *setup, eb_refusal_handler *refusal) {
  take_setup = setup;
  take_refusal = refusal;
  eb_ids_begin(&tagged_ids, 1, eb_tags_num_ids(&eb_domain.tags));
  eb_ids_begin(&further_ids, eb_tags_num_ids(&eb_domain.tags), INT64_MAX);
}

int eb_match_base(const eb_match *match) { return eb_tags_channel_base(&eb_domain.tags, match->first_id); }

/* ---- Senders ---- */

static eb_ids *ids_with(int64_t id) { return id < tagged_ids.end ? &tagged_ids : &further_ids; }

/* False when memory is short. */
static bool take_ids(eb_match *match, int64_t num_ids) {
  eb_lock();
  int64_t first_id = eb_ids_take(&tagged_ids, num_ids, match);
  if (first_id < 0) {
    first_id = eb_ids_take(&further_ids, 1, match);
    num_ids = 0;
  }
  eb_unlock();
  match->first_id = first_id < 0 ? 0 : first_id;
  match->num_ids = num_ids;
  return first_id > 0;
}

int eb_match_announce(eb_match *match, const eb_view *view, int64_t step_bytes, int num_segments) {
  const eb_transfer *const transfer = match->transfer;
  eb_matching_collect();
  if (!take_ids(match, eb_tags_ids_needed(&eb_domain.tags, num_segments))) return MPI_ERR_NO_MEM;
  /* What has no tags travels on one lane. */
  match->lane = eb_match_is_without_tags(match) ? 0 : (int)(match->first_id % eb_domain.num_lanes);
  const eb_setup setup = {.identity = view->identity,
                          .total_bytes = transfer->total_bytes,
                          .step_bytes = step_bytes,
                          .first_id = match->first_id,
                          .num_ids = match->num_ids,
                          .spread = transfer->spread,
                          .source = view->rank,
                          .tag = transfer->tag,
                          .lane = match->lane};
  const int rc = eb_control_send(transfer->wire_peer, EB_CONTROL_SETUP, &setup, sizeof setup);
  if (rc == MPI_SUCCESS) return rc;
  eb_lock();
  eb_ids_disown(ids_with(match->first_id), match->first_id);
  eb_ids_release(ids_with(match->first_id), match->first_id); /* for the receiver, which does not know of it */
  eb_unlock();
  match->first_id = 0;
  return rc;
}

/* Under eb_lock. */
static void take_answer(int64_t first_id, eb_answer_kind kind) {
  eb_match *const match = eb_ids_owner(ids_with(first_id), first_id); /* NULL: freed */
  if (kind == EB_RELEASED) eb_ids_release(ids_with(first_id), first_id);
  else if (match && kind == EB_ACCEPTED) atomic_store(&match->is_accepted, true);
  else if (match) take_refusal(match);
}

void eb_matching_collect(void) {
  eb_lock();
  eb_answers_collect(take_answer);
  eb_unlock();
}

/* ---- Receivers ---- */

int eb_matching_num_posted(void) { return atomic_load_explicit(&num_posted, memory_order_relaxed); }

/* Under eb_lock. */
static void match_setup(eb_match *match, const eb_setup *setup) {
  if (match->is_posted && !match->is_freed) num_posted--;
  match->is_posted = false;
  match->first_id = setup->first_id;
  match->num_ids = setup->num_ids;
  match->lane = setup->lane;
  take_setup(match, setup);
}

int eb_match_post(eb_match *match, uint64_t identity) {
  int rc = MPI_SUCCESS;
  eb_lock();
  eb_matching_progress();
  endpoint *at = endpoint_of(identity, match->transfer->peer, match->transfer->tag);
  if (!at) {
    rc = MPI_ERR_NO_MEM;
  } else if (at->unexpected) {
    unexpected_setup *const first = at->unexpected;
    at->unexpected = first->next;
    if (!at->unexpected) at->last_unexpected = &at->unexpected;
    match_setup(match, &first->setup);
    free(first);
  } else {
    match->next_posted = NULL;
    *at->last_posted = match;
    at->last_posted = &match->next_posted;
    match->is_posted = true;
    num_posted++;
  }
  eb_unlock();
  return rc;
}

void eb_matching_progress(void) {
  eb_setup received;
  int num_bytes = sizeof received;
  eb_lock();
  while (eb_control_take(EB_CONTROL_SETUP, &received, &num_bytes)) {
    endpoint *const at = endpoint_of(received.identity, received.source, received.tag);
    if (at && at->posted) {
      eb_match *const match = at->posted;
      at->posted = match->next_posted;
      if (!at->posted) at->last_posted = &at->posted;
      match_setup(match, &received);
      continue;
    }
    unexpected_setup *const kept = at ? malloc(sizeof *kept) : NULL;
    if (!kept) eb_abort(EB_NO_MEMORY); /* a lost setup would hang the job */
    *kept = (unexpected_setup){.setup = received};
    *at->last_unexpected = kept;
    at->last_unexpected = &kept->next;
  }
  eb_unlock();
}

static int answer(const eb_match *match, eb_answer_kind kind, int64_t num_ids) {
  return eb_answers_send(match->transfer->wire_peer, match->first_id, kind, num_ids);
}

int eb_match_accept(eb_match *match) {
  if (match->first_id == 0 || atomic_exchange(&match->is_accepted, true)) return MPI_SUCCESS;
  return answer(match, EB_ACCEPTED, 0);
}

int eb_match_refuse(eb_match *match) {
  match->is_refused = true;
  return answer(match, EB_REFUSED, 0);
}

/* ---- The end ---- */

bool eb_match_leave(eb_match *match) {
  if (match->transfer->is_send) {
    if (match->first_id) eb_ids_disown(ids_with(match->first_id), match->first_id);
    return true;
  }
  if (!match->is_posted) return true;
  num_posted--;
  match->is_freed = true;
  return false;
}

int eb_match_release(const eb_match *match) {
  /* The ids of a refused transfer are not used again: its sender may have received the answer before it sent anything, and
   * the receives that were posted to drop its data would take another transfer's. */
  if (match->transfer->is_send || match->first_id == 0 || match->is_refused || match->keeps_ids) return MPI_SUCCESS;
  return answer(match, EB_RELEASED, match->num_ids);
}

void eb_matching_end(void) {
  for (size_t b = 0; b < table.num_buckets; b++) {
    for (endpoint *at = table.buckets[b]; at;) {
      endpoint *const next = at->next;
      while (at->unexpected) {
        unexpected_setup *const rest = at->unexpected->next;
        free(at->unexpected);
        at->unexpected = rest;
      }
      free(at);
      at = next;
    }
  }
  free(table.buckets);
  table.buckets = NULL;
  table.num_buckets = table.num_endpoints = 0;
  num_posted = 0;
  eb_answers_end();
  eb_ids_end(&tagged_ids);
  eb_ids_end(&further_ids);
}
