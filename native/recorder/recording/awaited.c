/* The tables of the page: what has no place within a few probes is counted, and nothing moves. */
#include "recorder/recording/awaited.h"

#include <stddef.h>

enum { MIN_ALIKE = 4 };

static eb_page own;
static eb_awaited_communicator without_place;

eb_page *eb_page_current = &own;
bool eb_page_is_shared;

_Static_assert(sizeof(eb_awaited_call) == 64 && sizeof(eb_awaited_request) == 64 && sizeof(eb_awaited_channel) == 40 &&
                   sizeof(eb_awaited_communicator) == 216 && sizeof(eb_awaited_head) == 120,
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

static uint32_t hash_of(uint64_t value) { return (uint32_t)(value * 0x9e3779b97f4a7c15u >> 40); }

static eb_awaited_request *request_at(uint64_t key, uint32_t probe) {
  return &eb_page_current->requests[(hash_of(key) + probe) % EB_AWAITED_REQUESTS];
}

static bool take(eb_awaited_request *place) {
  uint64_t unused = 0;
  if (!eb_page_is_shared) return __atomic_load_n(&place->key, __ATOMIC_RELAXED) == 0;
  return __atomic_compare_exchange_n(&place->key, &unused, EB_AWAITED_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* `request` has the key EB_AWAITED_TAKEN: its place must not look free meanwhile. */
void eb_awaited_post(uint64_t key, const eb_awaited_request *request) {
  uint32_t num_alike = 0;
  for (uint32_t p = 0; p < EB_AWAITED_PROBES; p++) {
    eb_awaited_request *const place = request_at(key, p);
    if (__atomic_load_n(&place->key, __ATOMIC_RELAXED) == key) num_alike++;
    if (!take(place)) continue;
    *place = *request;
    place->thread = UINT16_MAX;
    __atomic_store_n(&place->key, key, __ATOMIC_RELEASE);
    return;
  }
  /* So many have one handle only if they were complete when they were started. */
  if (num_alike < MIN_ALIKE) (void)add(&eb_page_current->awaited.requests_left_out, 1);
}

/* Requests share a handle if they were complete when they were started, or if the MPI has freed one in a thread that has not
 * said so yet, and another thread has got its handle. So what completes is the oldest of them; what a thread starts to wait for
 * is the latest, except those that the call of `but` waits for already. */
static eb_awaited_request *oldest(uint64_t key) {
  eb_awaited_request *first = NULL;
  for (uint32_t p = 0; p < EB_AWAITED_PROBES; p++) {
    eb_awaited_request *const place = request_at(key, p);
    if (__atomic_load_n(&place->key, __ATOMIC_ACQUIRE) == key && (!first || place->posted_ticks < first->posted_ticks))
      first = place;
  }
  return first;
}

static eb_awaited_request *latest(uint64_t key, uint32_t but) {
  eb_awaited_request *last = NULL;
  const uint32_t serial = eb_awaited_call_of(but)->serial;
  for (uint32_t p = 0; p < EB_AWAITED_PROBES; p++) {
    eb_awaited_request *const place = request_at(key, p);
    if (__atomic_load_n(&place->key, __ATOMIC_ACQUIRE) != key || (place->thread == but && place->serial == serial)) continue;
    if (!last || place->posted_ticks >= last->posted_ticks) last = place;
  }
  return last;
}

void eb_awaited_complete(uint64_t key) {
  eb_awaited_request *const place = oldest(key);
  if (place) __atomic_store_n(&place->key, 0, __ATOMIC_RELEASE);
}

void eb_awaited_mark(uint64_t key, uint32_t thread) {
  eb_awaited_call *const call = eb_awaited_call_of(thread);
  eb_awaited_request *const place = thread < EB_OPEN_CALLS_MAX ? latest(key, thread) : NULL;
  call->num++;
  if (!place) {
    if (!oldest(key)) call->num_left_out++; /* else it is one of those that were complete */
    return;
  }
  place->thread = (uint16_t)thread;
  __atomic_store_n(&place->serial, call->serial, __ATOMIC_RELAXED);
}

void eb_awaited_ready(uint64_t key, uint32_t num) {
  eb_awaited_request *const place = latest(key, EB_OPEN_CALLS_MAX);
  if (place) (void)__atomic_fetch_add(&place->num_ready, num, __ATOMIC_RELAXED);
}

static bool is_of(const eb_awaited_channel *channel, uint32_t communicator, int32_t peer, int32_t tag) {
  return channel->communicator == communicator && channel->peer == peer && channel->tag == tag;
}

/* NULL: there are too many. Two threads may add the same one, whose counts the reader adds up. */
static eb_awaited_channel *channel_of(uint32_t communicator, int32_t peer, int32_t tag) {
  const uint32_t hash = hash_of((uint64_t)(uint32_t)peer << 32 ^ (uint64_t)(uint32_t)tag << 8 ^ communicator);
  for (uint32_t p = 0; p < EB_AWAITED_PROBES; p++) {
    eb_awaited_channel *const place = &eb_page_current->channels[(hash + p) % EB_AWAITED_CHANNELS];
    uint32_t is_used = __atomic_load_n(&place->is_used, __ATOMIC_ACQUIRE);
    if (is_used == 2 && is_of(place, communicator, peer, tag)) return place;
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
  eb_awaited_channel *const channel = channel_of(communicator, peer, tag);
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

eb_awaited_communicator *eb_awaited_window_add(void) {
  eb_awaited_head *const head = &eb_page_current->awaited;
  if (head->num_windows < EB_AWAITED_WINDOWS && head->num_communicators < EB_AWAITED_COMMUNICATORS) {
    head->num_windows++;
    return &eb_page_current->communicators[head->num_communicators++];
  }
  head->windows_left_out++;
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
