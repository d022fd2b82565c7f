/* Sends, receives and matches control messages. */
#include "partitioned/matching/matching.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "partitioned/channel/channel.h"
#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/process/world.h"

static int send_control(int peer, int what, const void *bytes, size_t num_bytes) {
  return eb_send_queue_send(EB_SEND_CONTROL, bytes, num_bytes, peer, eb_tags_control(&eb_domain.tags, what), eb_domain.comm);
}

/* One control message of a kind, from any rank, of at most *num_bytes; false if there is none. */
static bool take(int what, void *bytes, int *num_bytes) {
  MPI_Message message;
  MPI_Status status;
  int found = 0;
  if (PMPI_Improbe(MPI_ANY_SOURCE, eb_tags_control(&eb_domain.tags, what), eb_domain.comm, &found, &message, &status) != MPI_SUCCESS ||
      !found)
    return false;
  return PMPI_Mrecv(bytes, *num_bytes, MPI_BYTE, &message, &status) == MPI_SUCCESS &&
         PMPI_Get_count(&status, MPI_BYTE, num_bytes) == MPI_SUCCESS;
}

/* ---- Setups ---- */

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
  eb_channel *posted, **last_posted;
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

int eb_matching_announce(eb_channel *channel, const eb_setup *setup) {
  return send_control(channel->wire_peer, EB_CONTROL_SETUP, setup, sizeof *setup);
}

int eb_matching_num_posted(void) { return atomic_load_explicit(&num_posted, memory_order_relaxed); }

void eb_matching_disown(void) { num_posted--; }

int eb_matching_post(eb_channel *channel) {
  int rc = MPI_SUCCESS;
  eb_lock();
  eb_matching_progress();
  endpoint *at = endpoint_of(channel->view->identity, channel->peer, channel->tag);
  if (!at) {
    rc = MPI_ERR_NO_MEM;
  } else if (at->unexpected) {
    unexpected_setup *const first = at->unexpected;
    at->unexpected = first->next;
    if (!at->unexpected) at->last_unexpected = &at->unexpected;
    eb_channel_take_setup(channel, &first->setup);
    free(first);
  } else {
    channel->next_posted = NULL;
    *at->last_posted = channel;
    at->last_posted = &channel->next_posted;
    num_posted++;
  }
  eb_unlock();
  return rc;
}

void eb_matching_progress(void) {
  eb_setup received;
  int num_bytes = sizeof received;
  eb_lock();
  while (take(EB_CONTROL_SETUP, &received, &num_bytes)) {
    endpoint *const at = endpoint_of(received.identity, received.source, received.tag);
    if (at && at->posted) {
      eb_channel *const channel = at->posted;
      at->posted = channel->next_posted;
      if (!at->posted) at->last_posted = &at->posted;
      if (!channel->is_freed) num_posted--;
      eb_channel_take_setup(channel, &received);
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

/* ---- Answers of receivers ---- */

enum { MAX_ANSWERS = 32 };

typedef enum { ACCEPTED, REFUSED, RELEASED } answer_kind;

typedef struct {
  int64_t first_id;
  int64_t kind;
} answer;

/* Answers not yet sent to one sender. */
typedef struct {
  int num;
  int64_t num_ids; /* of all of them */
  answer answers[MAX_ANSWERS];
} unsent_answers;

static unsent_answers **unsent; /* [domain size], or NULL where there were none */

static int send_answers(int sender, unsent_answers *of_sender) {
  const size_t num_bytes = (size_t)of_sender->num * sizeof of_sender->answers[0];
  const int rc = send_control(sender, EB_CONTROL_ANSWER, of_sender->answers, num_bytes);
  if (rc != MPI_SUCCESS) return rc;
  of_sender->num = 0;
  of_sender->num_ids = 0;
  return rc;
}

/* One message per release could be too many for a sender that does not receive them; but at most a quarter of the ids
 * should be out of use. */
static bool is_to_be_sent(const unsent_answers *of_sender, answer_kind kind) {
  return kind != RELEASED || of_sender->num == MAX_ANSWERS || of_sender->num_ids >= eb_tags_num_ids(&eb_domain.tags) / 4 / eb_domain.size;
}

static int answer_sender(int sender, answer made, int64_t num_ids) {
  int rc = MPI_SUCCESS;
  eb_lock();
  if (!unsent) unsent = calloc((size_t)eb_domain.size, sizeof *unsent);
  if (unsent && !unsent[sender]) unsent[sender] = calloc(1, sizeof *unsent[sender]);
  if (unsent && unsent[sender]) {
    unsent_answers *const of_sender = unsent[sender];
    of_sender->answers[of_sender->num++] = made;
    of_sender->num_ids += num_ids;
    if (is_to_be_sent(of_sender, (answer_kind)made.kind)) rc = send_answers(sender, of_sender);
    if (rc != MPI_SUCCESS && made.kind == RELEASED && of_sender->num < MAX_ANSWERS) rc = MPI_SUCCESS; /* it goes with a later one */
    if (rc != MPI_SUCCESS) {
      of_sender->num--; /* the caller handles this one; the others stay queued */
      of_sender->num_ids -= num_ids;
    }
  } else {
    rc = send_control(sender, EB_CONTROL_ANSWER, &made, sizeof made);
  }
  eb_unlock();
  return rc;
}

int eb_matching_accept(int sender, int64_t first_id) { return answer_sender(sender, (answer){first_id, ACCEPTED}, 0); }
int eb_matching_refuse(int sender, int64_t first_id) { return answer_sender(sender, (answer){first_id, REFUSED}, 0); }
int eb_matching_release(int sender, int64_t first_id, int64_t num_ids) {
  return answer_sender(sender, (answer){first_id, RELEASED}, num_ids);
}

static void take_answer(const answer *received) {
  eb_channel *const channel = eb_ids_owner(&eb_domain.ids, received->first_id); /* NULL: freed */
  if (received->kind == RELEASED) eb_ids_release(&eb_domain.ids, received->first_id);
  else if (channel) eb_channel_take_answer(channel, received->kind == ACCEPTED ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
}

/* ---- Feedback ---- */

static eb_expected_feedback *expected_list; /* their receives are posted */
static int num_expected_feedback;

static void drop_feedback(eb_expected_feedback *expected) {
  *expected->at = expected->next;
  if (expected->next) expected->next->at = expected->at;
  num_expected_feedback--;
  free(expected);
}

static bool has_arrived(eb_expected_feedback *expected) {
  int flag = 0;
  /* A failed receive is complete, too; its content belongs to no start. */
  return PMPI_Test(&expected->request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
}

/* Under eb_lock: those that are no longer needed. */
static void drop_unwanted_feedback(void) {
  for (eb_expected_feedback *expected = expected_list; expected;) {
    eb_expected_feedback *const next = expected->next;
    if (!expected->is_wanted && has_arrived(expected)) drop_feedback(expected);
    expected = next;
  }
}

void eb_matching_collect(void) {
  answer received[MAX_ANSWERS];
  int num_bytes = sizeof received;
  eb_lock();
  while (take(EB_CONTROL_ANSWER, received, &num_bytes)) {
    for (int a = 0; a < num_bytes / (int)sizeof received[0]; a++) take_answer(&received[a]);
    num_bytes = sizeof received;
  }
  drop_unwanted_feedback();
  eb_unlock();
}

int eb_matching_expect_feedback(int peer, int tag, eb_expected_feedback **made) {
  eb_lock();
  drop_unwanted_feedback();
  eb_unlock();
  eb_expected_feedback *expected = calloc(1, sizeof *expected);
  if (!expected) return MPI_ERR_NO_MEM;
  const int rc = PMPI_Irecv(&expected->feedback, sizeof expected->feedback, MPI_BYTE, peer, tag, eb_domain.comm, &expected->request);
  if (rc != MPI_SUCCESS) {
    free(expected);
    return rc;
  }
  expected->is_wanted = true;
  eb_lock();
  expected->next = expected_list;
  expected->at = &expected_list;
  if (expected->next) expected->next->at = &expected->next;
  expected_list = expected;
  num_expected_feedback++;
  eb_unlock();
  *made = expected;
  return MPI_SUCCESS;
}

bool eb_matching_take_feedback(eb_expected_feedback **expected, eb_feedback *feedback) {
  bool arrived = false;
  if (!*expected) return false;
  eb_lock();
  if (has_arrived(*expected)) {
    arrived = true;
    *feedback = (*expected)->feedback;
    drop_feedback(*expected);
  } else {
    (*expected)->is_wanted = false; /* it stays posted, because it will arrive */
  }
  eb_unlock();
  *expected = NULL;
  return arrived;
}

int eb_matching_num_expected_feedback(void) { return num_expected_feedback; }

void eb_matching_abandon_feedback(void) {
  eb_lock();
  for (eb_expected_feedback *expected = expected_list; expected; expected = expected->next) expected->is_wanted = false;
  eb_unlock();
}

void eb_matching_cancel_feedback(void) {
  eb_lock();
  while (expected_list) {
    PMPI_Cancel(&expected_list->request);
    PMPI_Wait(&expected_list->request, MPI_STATUS_IGNORE);
    drop_feedback(expected_list);
  }
  eb_unlock();
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
  for (int sender = 0; unsent && sender < eb_domain.size; sender++) free(unsent[sender]);
  free(unsent);
  unsent = NULL;
}
