/* The tables of the page: what has no place within a few probes is counted, and nothing moves. */
#include "recorder/recording/awaited.h"

#include <stddef.h>

enum { MIN_ALIKE = 4 };

static eb_page own;
static eb_awaited_communicator without_place;

eb_page *eb_page_current = &own;
bool eb_page_is_shared;
int eb_awaited_num_wild;
uint64_t eb_awaited_done_send = EB_AWAITED_TAKEN, eb_awaited_done_receive = EB_AWAITED_TAKEN;
uint64_t eb_awaited_started_keys[EB_AWAITED_STARTED];
eb_awaited_request eb_awaited_started[EB_AWAITED_STARTED];

_Static_assert(sizeof(eb_awaited_call) == 64 && sizeof(eb_awaited_request) == 64 && sizeof(eb_awaited_channel) == 40 &&
                   sizeof(eb_awaited_communicator) == 216 && sizeof(eb_awaited_head) == 128 && offsetof(eb_page, keys) % 64 == 0,
               "readers rely on it");

static uint32_t add(uint32_t *value, uint32_t by) {
  if (eb_page_is_shared) return __atomic_fetch_add(value, by, __ATOMIC_RELAXED);
  const uint32_t before = *value;
  __atomic_store_n(value, before + by, __ATOMIC_RELAXED);
  return before;
}

static void count(uint64_t *value) {
  if (eb_page_is_shared) (void)__atomic_fetch_add(value, 1, __ATOMIC_RELAXED);
  else __atomic_store_n(value, *value + 1, __ATOMIC_RELAXED);
}

/* No key has been in its further places as long as it is EB_AWAITED_PROBES. */
static uint32_t num_probes = EB_AWAITED_PROBES;

static uint32_t place_at(uint32_t first, uint32_t probe) { return (first + probe) % EB_AWAITED_REQUESTS; }

static uint32_t probes(void) { return __atomic_load_n(&num_probes, __ATOMIC_RELAXED); }

static bool take(uint64_t *key) {
  uint64_t unused = 0;
  if (!eb_page_is_shared) return *key == 0;
  return __atomic_compare_exchange_n(key, &unused, EB_AWAITED_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void eb_awaited_remember(uint64_t key, const eb_awaited_request *request) {
  const uint32_t at = eb_awaited_started_at(key);
  eb_awaited_started[at] = *request;
  eb_awaited_started_keys[at] = key;
}

/* Where one thread calls the MPI, a handle that is given out again is that of a request whose completion was not seen, or of all
 * sends that are complete. */
static void replace(uint32_t place) {
  uint64_t *const key = &eb_page_current->keys[place];
  const eb_awaited_request *const former = &eb_page_current->requests[place];
  if (eb_awaited_is_wild(former)) eb_awaited_count_wild(-1);
  const bool is_of_a_window = former->tag == EB_TAG_POSTED || former->tag == EB_TAG_COMPLETED;
  if (former->kind == EB_AWAITED_RECEIVE && !is_of_a_window) eb_awaited_lose(); /* its message was not counted */
  __atomic_store_n(key, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* So many sends have one handle only if they were complete when they were started: the others need no place. */
uint32_t eb_awaited_place(uint64_t key, eb_awaited_kind kind) {
  const uint32_t first = eb_awaited_places_of(key), num = probes();
  uint64_t *const keys = eb_page_current->keys;
  uint32_t num_alike = 0;
  if (eb_awaited_is_done(key)) {
    if (kind == EB_AWAITED_RECEIVE) eb_awaited_lose(); /* of a message, which its completion would have counted */
    return EB_AWAITED_REQUESTS;
  }
  for (uint32_t p = 0; !eb_page_is_shared && p < num; p++)
    if (keys[place_at(first, p)] == key) replace(place_at(first, p));
  for (uint32_t p = 0; !eb_page_is_shared && p < num; p++)
    if (keys[place_at(first, p)] == 0) return place_at(first, p);
  for (uint32_t p = 0; p < num; p++) num_alike += __atomic_load_n(&keys[place_at(first, p)], __ATOMIC_RELAXED) == key;
  if (num_alike >= MIN_ALIKE && kind == EB_AWAITED_SEND) return EB_AWAITED_REQUESTS;
  for (uint32_t p = 0; p < 2 * EB_AWAITED_PROBES; p++) {
    const uint32_t place = place_at(first, p);
    if (!take(&keys[place])) continue;
    if (p >= EB_AWAITED_PROBES) __atomic_store_n(&num_probes, 2 * EB_AWAITED_PROBES, __ATOMIC_RELAXED);
    return place;
  }
  /* Of the others no message is counted. */
  if (kind == EB_AWAITED_SEND || kind == EB_AWAITED_RECEIVE) eb_awaited_lose();
  return EB_AWAITED_REQUESTS;
}

/* Requests share a handle if they were complete when they were started, or if the MPI has freed one in a thread that has not
 * said so yet, and another thread has got its handle. So what completes is the oldest of them; what a thread starts to wait for
 * is the latest, except those that the call of `but` waits for already. */
static uint32_t oldest(uint64_t key) {
  const uint32_t first = eb_awaited_places_of(key);
  const eb_awaited_request *const requests = eb_page_current->requests;
  uint32_t found = EB_AWAITED_REQUESTS;
  for (uint32_t probe = 0; probe < probes(); probe++) {
    const uint32_t p = place_at(first, probe);
    if (__atomic_load_n(&eb_page_current->keys[p], __ATOMIC_ACQUIRE) != key) continue;
    if (found == EB_AWAITED_REQUESTS || requests[p].posted_ticks < requests[found].posted_ticks) found = p;
  }
  return found;
}

static eb_awaited_request *latest(uint64_t key, uint32_t but) {
  eb_awaited_request *last = NULL;
  const uint32_t serial = eb_awaited_call_of(but)->serial, first = eb_awaited_places_of(key);
  for (uint32_t probe = 0; probe < probes(); probe++) {
    const uint32_t p = place_at(first, probe);
    eb_awaited_request *const place = &eb_page_current->requests[p];
    if (__atomic_load_n(&eb_page_current->keys[p], __ATOMIC_ACQUIRE) != key) continue;
    if (place->thread == but && place->serial == serial) continue;
    if (!last || place->posted_ticks >= last->posted_ticks) last = place;
  }
  return last;
}

/* A free place has no key: what is 0 is no request. */
bool eb_awaited_knows(uint64_t key) { return key != 0 && oldest(key) != EB_AWAITED_REQUESTS; }

bool eb_awaited_complete(uint64_t key, eb_awaited_request *request) {
  uint32_t place;
  uint64_t expected;
  do {
    expected = key;
    place = oldest(key);
    if (place == EB_AWAITED_REQUESTS) return false;
  } while (eb_page_is_shared && !__atomic_compare_exchange_n(&eb_page_current->keys[place], &expected, EB_AWAITED_TAKEN, false,
                                                             __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
  *request = eb_page_current->requests[place];
  if (eb_awaited_is_wild(request)) eb_awaited_count_wild(-1);
  __atomic_store_n(&eb_page_current->keys[place], 0, __ATOMIC_RELEASE);
  return true;
}

void eb_awaited_lose(void) { (void)add(&eb_page_current->awaited.requests_left_out, 1); }

void eb_awaited_mark(uint64_t key, uint32_t thread) {
  eb_awaited_call *const call = eb_awaited_call_of(thread);
  eb_awaited_request *const place = thread < EB_OPEN_CALLS_MAX ? latest(key, thread) : NULL;
  call->num++;
  if (!place) {
    if (oldest(key) == EB_AWAITED_REQUESTS && !eb_awaited_is_done(key)) call->num_left_out++; /* else it was complete */
    return;
  }
  place->thread = (uint16_t)thread;
  __atomic_store_n(&place->serial, call->serial, __ATOMIC_RELAXED);
}

/* Threads of a rank make partitions ready at the same time. What is none, or no range, is an error of the program, for the MPI to
 * report. */
static void set_ready(const eb_awaited_request *request, int partition) {
  if (partition < 0 || partition >= EB_AWAITED_PARTITIONS) return;
  uint64_t *const ready = eb_page_current->ready[request - eb_page_current->requests];
  (void)__atomic_fetch_or(&ready[partition / 64], UINT64_C(1) << partition % 64, __ATOMIC_RELAXED);
}

void eb_awaited_ready(uint64_t key, int first, int last) {
  eb_awaited_request *const request = first >= 0 && first <= last ? latest(key, EB_OPEN_CALLS_MAX) : NULL;
  if (!request) return;
  for (int p = first; p <= last && p < EB_AWAITED_PARTITIONS; p++) set_ready(request, p);
  (void)__atomic_fetch_add(&request->num_ready, (uint32_t)(last - first) + 1, __ATOMIC_RELAXED);
}

void eb_awaited_ready_list(uint64_t key, int length, const int *partitions) {
  eb_awaited_request *const request = length > 0 ? latest(key, EB_OPEN_CALLS_MAX) : NULL;
  if (!request) return;
  for (int p = 0; p < length; p++) set_ready(request, partitions[p]);
  (void)__atomic_fetch_add(&request->num_ready, (uint32_t)length, __ATOMIC_RELAXED);
}

/* Two threads may add the same one, whose counts the reader adds up. */
eb_awaited_channel *eb_awaited_channel_of(uint32_t communicator, int32_t peer, int32_t tag) {
  eb_awaited_channel *const every = eb_page_current->channels;
  const uint32_t first = (uint32_t)(eb_awaited_channel_at(communicator, peer, tag) - every);
  for (uint32_t p = 0; p < EB_AWAITED_PROBES; p++) {
    eb_awaited_channel *const place = &every[(first + p) % EB_AWAITED_CHANNELS];
    uint32_t is_used = __atomic_load_n(&place->is_used, __ATOMIC_ACQUIRE);
    if (is_used == 2 && eb_awaited_is_channel(place, communicator, peer, tag)) return place;
    if (is_used != 0) continue;
    if (!__atomic_compare_exchange_n(&place->is_used, &is_used, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
    place->communicator = communicator;
    place->peer = peer;
    place->tag = tag;
    __atomic_store_n(&place->is_used, 2, __ATOMIC_RELEASE);
    return place;
  }
  return NULL;
}

void eb_awaited_message(bool is_sent, uint32_t communicator, int32_t peer, int32_t tag, uint64_t bytes) {
  eb_awaited_channel *const channel = eb_awaited_channel_of(communicator, peer, tag);
  if (!channel) {
    (void)add(&eb_page_current->awaited.channels_left_out, 1);
    return;
  }
  if (is_sent) channel->sent_bytes = bytes;
  count(is_sent ? &channel->sent : &channel->received);
}

eb_awaited_communicator *eb_awaited_communicator_add(void) {
  eb_awaited_head *const head = &eb_page_current->awaited;
  if (head->num_communicators < EB_AWAITED_COMMUNICATORS) return &eb_page_current->communicators[head->num_communicators++];
  head->communicators_left_out++;
  return &without_place;
}

/* Places of freed objects, the oldest first. */
static struct {
  eb_awaited_communicator *places[EB_AWAITED_OBJECTS];
  uint32_t first, num;
} freed[EB_NUM_OBJECTS];

void eb_awaited_object_free(eb_awaited_communicator *object, eb_object_kind kind) {
  freed[kind].places[(freed[kind].first + freed[kind].num++) % EB_AWAITED_OBJECTS] = object;
}

static eb_awaited_communicator *reuse(eb_object_kind kind) {
  eb_awaited_communicator *const object = freed[kind].places[freed[kind].first];
  freed[kind].first = (freed[kind].first + 1) % EB_AWAITED_OBJECTS;
  freed[kind].num--;
  eb_page_current->awaited.objects_forgotten++;
  __atomic_store_n(&object->number, 0, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  return object;
}

eb_awaited_communicator *eb_awaited_object_add(eb_object_kind kind) {
  static uint32_t num_of[EB_NUM_OBJECTS];
  eb_awaited_head *const head = &eb_page_current->awaited;
  if (num_of[kind] < EB_AWAITED_OBJECTS && head->num_communicators < EB_AWAITED_COMMUNICATORS) {
    num_of[kind]++;
    head->num_objects++;
    return &eb_page_current->communicators[head->num_communicators++];
  }
  if (freed[kind].num > 0) return reuse(kind);
  head->objects_left_out++;
  return NULL;
}

int32_t *eb_awaited_members_add(uint32_t num) {
  eb_awaited_head *const head = &eb_page_current->awaited;
  if (num > EB_AWAITED_MEMBERS - head->num_members) return NULL;
  head->num_members += num;
  return &eb_page_current->members[head->num_members - num];
}

uint64_t eb_awaited_enter(eb_awaited_communicator *communicator, uint32_t call, int32_t root, uint64_t bytes, uint64_t site) {
  const uint64_t number = eb_page_is_shared ? __atomic_add_fetch(&communicator->num_entered, 1, __ATOMIC_RELAXED)
                                            : communicator->num_entered + 1;
  communicator->entered[number % EB_AWAITED_ENTERED] = (eb_awaited_entered){call, root, bytes, site};
  if (!eb_page_is_shared) __atomic_store_n(&communicator->num_entered, number, __ATOMIC_RELEASE);
  return number;
}
