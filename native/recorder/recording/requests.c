/* A hash table of requests, in shards that threads seldom use together.
 *
 * A handle may be there several times: a thread completes a request, and before the recorder has removed it another thread
 * creates one that the MPI gives the same handle. Only the newest can be active. And requests may share a handle: in MPICH those
 * of all sends that were complete when they returned, and those to MPI_PROC_NULL.
 */
#include "recorder/recording/requests.h"

#include <sched.h>
#include <stdlib.h>

#include "recorder/recording/trace.h"

#define NUM_SHARDS 64
#define FIRST_BUCKETS 16

/* A bucket has the newest node of each key and starter, from which the older ones hang. */
typedef struct node {
  struct node *next, *older, *newer;
  struct node *oldest; /* of the key and starter; only in the newest */
  uint64_t key;
  eb_ticket ticket;
  eb_request request;
} node;

typedef struct {
  _Alignas(64) int is_locked;
  uint32_t num, num_buckets; /* a power of two */
  eb_ticket last_ticket;
  node **buckets, *unused;
} shard;

int eb_requests_num;
bool eb_requests_are_shared, eb_requests_include_others;
static shard shards[NUM_SHARDS];

static uint64_t mix(uint64_t key) {
  key *= 0x9e3779b97f4a7c15u;
  return key ^ key >> 32;
}

/* A program whose threads may not call the MPI at the same time needs no lock, and atomic operations take a fifth of the time
 * of a call. */
static void lock(shard *in) {
  if (!eb_requests_are_shared) return;
  for (unsigned round = 1; __atomic_exchange_n(&in->is_locked, 1, __ATOMIC_ACQUIRE); round++)
    while (__atomic_load_n(&in->is_locked, __ATOMIC_RELAXED))
      if (++round % 64 == 0) sched_yield(); /* the holder may need the core */
}

static void unlock(shard *in) {
  if (eb_requests_are_shared) __atomic_store_n(&in->is_locked, 0, __ATOMIC_RELEASE);
}

static void count(int by) {
  if (eb_requests_are_shared) __atomic_add_fetch(&eb_requests_num, by, __ATOMIC_RELAXED);
  else __atomic_store_n(&eb_requests_num, eb_requests_num + by, __ATOMIC_RELAXED);
}

static shard *shard_of(uint64_t key) { return &shards[mix(key) % NUM_SHARDS]; }
static node **bucket_of(const shard *in, uint64_t key) { return &in->buckets[mix(key) / NUM_SHARDS & (in->num_buckets - 1)]; }

static bool grow(shard *in) {
  const shard old = *in;
  const uint32_t num_buckets = old.num_buckets ? 2 * old.num_buckets : FIRST_BUCKETS;
  node **buckets = calloc(num_buckets, sizeof *buckets);
  if (!buckets) return old.num_buckets > 0;
  in->buckets = buckets;
  in->num_buckets = num_buckets;
  for (uint32_t b = 0; b < old.num_buckets; b++) {
    for (node *each = old.buckets[b], *next; each; each = next) {
      node **bucket = bucket_of(in, each->key);
      next = each->next;
      each->next = *bucket;
      *bucket = each;
    }
  }
  free(old.buckets);
  return true;
}

static node *take_unused(shard *in) {
  node *taken = in->unused;
  if (!taken) return malloc(sizeof *taken);
  in->unused = taken->next;
  return taken;
}

/* The link to the newest of the key and starter. NULL: none. Only under the lock. */
static node **link_of(const shard *in, uint64_t key, const eb_epoch *starter) {
  if (in->num == 0) return NULL;
  for (node **link = bucket_of(in, key); *link; link = &(*link)->next)
    if ((*link)->key == key && (*link)->request.starter == starter) return link;
  return NULL;
}

/* The newest of one starter that is not newer than the ticket. */
static node *find_of_starter(node *newest, eb_ticket ticket) {
  while (newest && newest->ticket > ticket) newest = newest->older;
  return newest;
}

/* The newest of the key that is not newer than the ticket. */
static node *find(const shard *in, uint64_t key, eb_ticket ticket) {
  node *newest = NULL;
  if (in->num == 0) return NULL;
  for (node *each = *bucket_of(in, key); each; each = each->next) {
    node *const of_starter = each->key == key ? find_of_starter(each, ticket) : NULL;
    if (of_starter && (!newest || of_starter->ticket > newest->ticket)) newest = of_starter;
  }
  return newest;
}

/* Where its ticket, key and starter say. */
static void insert(shard *in, node *added) {
  node **link = link_of(in, added->key, added->request.starter);
  node *newer = NULL, *older = link ? *link : NULL;
  while (older && older->ticket > added->ticket) newer = older, older = older->older;
  added->newer = newer;
  added->older = older;
  if (older) older->newer = added;
  if (newer) {
    newer->older = added;
    if (!older) (*link)->oldest = added;
    return;
  }
  if (!link) link = bucket_of(in, added->key);
  added->next = older ? older->next : *link;
  added->oldest = older ? older->oldest : added;
  *link = added;
}

static void take_out(const shard *in, node *removed) {
  node **link = link_of(in, removed->key, removed->request.starter);
  node *const newest = *link, *const older = removed->older;
  if (removed != newest) {
    removed->newer->older = older;
    if (older) older->newer = removed->newer;
    else newest->oldest = removed->newer;
    return;
  }
  *link = older ? older : removed->next;
  if (!older) return;
  older->next = removed->next;
  older->oldest = removed->oldest;
  older->newer = NULL;
}

/* Two requests of which neither has ended have one handle only if that is of no request in particular. */
static void find_done(bool is_send) {
  MPI_Request twice[2];
  char nothing = 0;
  for (int r = 0; r < 2; r++) {
    const int rc = is_send ? PMPI_Isend(&nothing, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &twice[r])
                           : PMPI_Irecv(&nothing, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &twice[r]);
    if (rc != MPI_SUCCESS) return;
  }
  if (twice[0] == twice[1] && twice[0] != MPI_REQUEST_NULL)
    *(is_send ? &eb_awaited_done_send : &eb_awaited_done_receive) = eb_request_key(twice[0]);
  (void)PMPI_Waitall(2, twice, MPI_STATUSES_IGNORE);
}

void eb_requests_begin(void) {
  find_done(true);
  find_done(false);
}

void eb_requests_add(uint64_t key, const eb_request *request) {
  shard *in = shard_of(key);
  eb_awaited_forget(key);
  lock(in);
  node *added = in->num < in->num_buckets || grow(in) ? take_unused(in) : NULL;
  if (added) {
    added->key = key;
    added->ticket = ++in->last_ticket;
    added->request = *request;
    added->request.starter = eb_epoch_current;
    insert(in, added);
    __atomic_store_n(&in->num, in->num + 1, __ATOMIC_RELAXED);
    count(1);
  }
  unlock(in);
}

static void remove_node(shard *in, node *removed) {
  take_out(in, removed);
  removed->next = in->unused;
  in->unused = removed;
  __atomic_store_n(&in->num, in->num - 1, __ATOMIC_RELAXED);
  count(-1);
}

static bool is_empty(const shard *in) { return __atomic_load_n(&in->num, __ATOMIC_RELAXED) == 0; }

bool eb_requests_start(uint64_t key, uint64_t now_ticks, eb_request *request) {
  shard *in = shard_of(key);
  if (is_empty(in)) return false;
  lock(in);
  node *started = find(in, key, EB_TICKET_ONLY);
  if (started) {
    started->request.is_active = true;
    if (started->request.starter != eb_epoch_current) {
      take_out(in, started);
      started->request.starter = eb_epoch_current;
      insert(in, started);
    }
    started->request.serial = eb_trace_post();
    started->request.posted_ticks = now_ticks;
    *request = started->request;
  }
  unlock(in);
  return started != NULL;
}

eb_ticket eb_requests_ticket(uint64_t key) {
  shard *in = shard_of(key);
  if (!eb_requests_are_shared) return EB_TICKET_ONLY;
  lock(in);
  const node *newest = find(in, key, EB_TICKET_ONLY);
  const eb_ticket ticket = newest ? newest->ticket : EB_TICKET_NONE;
  unlock(in);
  return ticket;
}

/* Requests of several threads may share a handle, too: of these the thread's own. Of sends that share one and are complete the
 * program completes the first one first, as a rule. */
static node *find_own(const shard *in, uint64_t key, eb_ticket ticket) {
  node **link = link_of(in, key, eb_epoch_current);
  node *newest = find_of_starter(link ? *link : NULL, ticket);
  if (!newest) newest = find(in, key, ticket);
  if (!newest) return NULL;
  node *const oldest = (*link_of(in, key, newest->request.starter))->oldest;
  return newest->request.kind == EB_REQUEST_OTHER && oldest->request.kind == EB_REQUEST_OTHER ? oldest : newest;
}

bool eb_requests_complete(uint64_t key, eb_ticket ticket, eb_request *request) {
  shard *in = shard_of(key);
  if (ticket == EB_TICKET_NONE || is_empty(in)) return false;
  lock(in);
  node *completed = find_own(in, key, ticket);
  if (completed) {
    *request = completed->request;
    if (eb_request_is_persistent(request)) completed->request.is_active = false;
    else remove_node(in, completed);
  }
  unlock(in);
  return completed != NULL;
}

bool eb_requests_know(uint64_t key) {
  shard *in = shard_of(key);
  if (is_empty(in)) return false;
  lock(in);
  const bool is_known = find(in, key, EB_TICKET_ONLY) != NULL;
  unlock(in);
  return is_known;
}

bool eb_requests_remove(uint64_t key, bool is_complete, eb_request *request) {
  shard *in = shard_of(key);
  eb_awaited_forget(key);
  if (is_empty(in)) return false;
  lock(in);
  node *removed = find(in, key, EB_TICKET_ONLY);
  if (removed && is_complete && !eb_request_is_persistent(&removed->request)) removed = NULL;
  if (removed) {
    *request = removed->request;
    remove_node(in, removed);
  }
  unlock(in);
  return removed != NULL;
}
