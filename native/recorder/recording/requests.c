/* A hash table of requests, in shards that threads seldom use together.
 *
 * A handle may be there several times: a thread completes a request, and before the recorder has removed it another thread
 * creates one that the MPI gives the same handle. Only the newest can be active.
 */
#include "recorder/recording/requests.h"

#include <sched.h>
#include <stdlib.h>

#include "recorder/recording/trace.h"

#define NUM_SHARDS 64
#define FIRST_BUCKETS 16

typedef struct node {
  struct node *next;
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
bool eb_requests_include_others;
static shard shards[NUM_SHARDS];

static uint64_t mix(uint64_t key) {
  key *= 0x9e3779b97f4a7c15u;
  return key ^ key >> 32;
}

static void lock(shard *in) {
  for (unsigned round = 1; __atomic_exchange_n(&in->is_locked, 1, __ATOMIC_ACQUIRE); round++)
    while (__atomic_load_n(&in->is_locked, __ATOMIC_RELAXED))
      if (++round % 64 == 0) sched_yield(); /* the holder may need the core */
}

static void unlock(shard *in) { __atomic_store_n(&in->is_locked, 0, __ATOMIC_RELEASE); }

static shard *shard_of(uint64_t key) { return &shards[mix(key) % NUM_SHARDS]; }
static node **bucket_of(const shard *in, uint64_t key) { return &in->buckets[mix(key) / NUM_SHARDS & (in->num_buckets - 1)]; }

/* The newest first, as the order in a bucket says who is older. */
static bool grow(shard *in) {
  const shard old = *in;
  const uint32_t num_buckets = old.num_buckets ? 2 * old.num_buckets : FIRST_BUCKETS;
  node **buckets = calloc(num_buckets, sizeof *buckets);
  if (!buckets) return old.num_buckets > 0;
  in->buckets = buckets;
  in->num_buckets = num_buckets;
  for (uint32_t b = 0; b < old.num_buckets; b++) {
    for (node *each = old.buckets[b], *next; each; each = next) {
      node **tail = bucket_of(in, each->key);
      while (*tail) tail = &(*tail)->next;
      next = each->next;
      each->next = NULL;
      *tail = each;
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

void eb_requests_add(uint64_t key, const eb_request *request) {
  shard *in = shard_of(key);
  lock(in);
  node *added = in->num < in->num_buckets || grow(in) ? take_unused(in) : NULL;
  if (added) {
    node **bucket = bucket_of(in, key);
    *added = (node){*bucket, key, ++in->last_ticket, *request};
    added->request.starter = eb_epoch_current;
    *bucket = added;
    __atomic_store_n(&in->num, in->num + 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&eb_requests_num, 1, __ATOMIC_RELAXED);
  }
  unlock(in);
}

/* The link to the newest of the key that is not newer than the ticket: several requests of a thread may share one handle, as
 * those to MPI_PROC_NULL do. NULL: none. Only under the lock. */
static node **find(const shard *in, uint64_t key, eb_ticket ticket) {
  if (in->num == 0) return NULL;
  for (node **link = bucket_of(in, key); *link; link = &(*link)->next)
    if ((*link)->key == key && (*link)->ticket <= ticket) return link;
  return NULL;
}

static void remove_node(shard *in, node **link) {
  node *removed = *link;
  *link = removed->next;
  removed->next = in->unused;
  in->unused = removed;
  __atomic_store_n(&in->num, in->num - 1, __ATOMIC_RELAXED);
  __atomic_sub_fetch(&eb_requests_num, 1, __ATOMIC_RELAXED);
}

static bool is_empty(const shard *in) { return __atomic_load_n(&in->num, __ATOMIC_RELAXED) == 0; }

bool eb_requests_start(uint64_t key, eb_request *request) {
  shard *in = shard_of(key);
  if (is_empty(in)) return false;
  lock(in);
  node **link = find(in, key, EB_TICKET_ONLY);
  if (link) {
    (*link)->request.is_active = true;
    (*link)->request.starter = eb_epoch_current;
    (*link)->request.posted = eb_trace_post();
    *request = (*link)->request;
  }
  unlock(in);
  return link != NULL;
}

eb_ticket eb_requests_ticket(uint64_t key) {
  shard *in = shard_of(key);
  if (!eb_requests_include_others) return EB_TICKET_ONLY;
  lock(in);
  node **link = find(in, key, EB_TICKET_ONLY);
  const eb_ticket ticket = link ? (*link)->ticket : EB_TICKET_NONE;
  unlock(in);
  return ticket;
}

/* Requests of several threads may share a handle, too: of these the thread's own. */
static node **find_own(const shard *in, uint64_t key, eb_ticket ticket) {
  node **newest = find(in, key, ticket);
  for (node **link = newest; link && *link; link = &(*link)->next)
    if ((*link)->key == key && (*link)->ticket <= ticket && (*link)->request.starter == eb_epoch_current) return link;
  return newest;
}

bool eb_requests_complete(uint64_t key, eb_ticket ticket, eb_request *request) {
  shard *in = shard_of(key);
  if (ticket == EB_TICKET_NONE || is_empty(in)) return false;
  lock(in);
  node **link = find_own(in, key, ticket);
  if (link) {
    *request = (*link)->request;
    if (eb_request_is_persistent(request)) (*link)->request.is_active = false;
    else remove_node(in, link);
  }
  unlock(in);
  return link != NULL;
}

bool eb_requests_remove(uint64_t key, eb_request *request) {
  shard *in = shard_of(key);
  if (is_empty(in)) return false;
  lock(in);
  node **link = find(in, key, EB_TICKET_ONLY);
  if (link) {
    *request = (*link)->request;
    remove_node(in, link);
  }
  unlock(in);
  return link != NULL;
}
