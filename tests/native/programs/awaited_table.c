/* The tables of the page without any MPI: keys that collide, places that are given back late, handles that are used again at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "recorder/recording/awaited.c"

#define CHECK(condition)                             \
  do {                                               \
    if (!(condition)) {                              \
      printf("line %d: %s\n", __LINE__, #condition); \
      exit(1);                                       \
    }                                                \
  } while (0)

static eb_awaited_request none;

static bool post(uint64_t key, eb_awaited_kind kind, int tag, uint64_t at) {
  const uint32_t place = eb_awaited_place(key, kind);
  const eb_awaited_request request = {.kind = kind, .tag = tag, .peer = 1, .posted_ticks = at, .thread = UINT16_MAX};
  if (place == EB_AWAITED_REQUESTS) return false;
  eb_awaited_post(place, key, &request);
  return true;
}

/* The tag of what has completed; -1: nothing has. */
static int complete(uint64_t key) { return eb_awaited_complete(key, &none) ? none.tag : -1; }

static uint32_t num_used(void) {
  uint32_t num = 0;
  for (int p = 0; p < EB_AWAITED_REQUESTS; p++) num += eb_page_current->keys[p] != 0;
  return num;
}

/* The n-th key whose places begin where those of `like` do. */
static uint64_t colliding(uint64_t like, int n) {
  uint64_t key = like;
  while (n > 0)
    if (eb_awaited_places_of(++key) == eb_awaited_places_of(like)) n--;
  return key;
}

static void keys_that_collide(void) {
  enum { MAX_PLACES = 2 * EB_AWAITED_PROBES };
  const uint32_t before = eb_page_current->awaited.requests_left_out;
  for (int n = 0; n < MAX_PLACES; n++) CHECK(post(colliding(0x98000001, n), EB_AWAITED_RECEIVE, n, n));
  CHECK(!post(colliding(0x98000001, MAX_PLACES), EB_AWAITED_RECEIVE, MAX_PLACES, MAX_PLACES));
  CHECK(eb_page_current->awaited.requests_left_out == before + 1);
  /* The first are given back last. */
  for (int n = MAX_PLACES; n-- > EB_AWAITED_PROBES;) CHECK(complete(colliding(0x98000001, n)) == n);
  CHECK(post(colliding(0x98000001, MAX_PLACES), EB_AWAITED_RECEIVE, MAX_PLACES, MAX_PLACES));
  CHECK(complete(colliding(0x98000001, MAX_PLACES)) == MAX_PLACES);
  for (int n = 0; n < EB_AWAITED_PROBES; n++) CHECK(complete(colliding(0x98000001, n)) == n);
  CHECK(num_used() == 0);
}

/* One thread: what had the handle before has ended where nobody has seen it. */
static void a_handle_that_is_used_again(void) {
  eb_page_is_shared = false;
  CHECK(post(7, EB_AWAITED_RECEIVE, -1, 1)); /* of any tag */
  CHECK(eb_awaited_num_wild == 1);
  CHECK(post(7, EB_AWAITED_SEND, 2, 2));
  CHECK(eb_awaited_num_wild == 0 && num_used() == 1);
  CHECK(complete(7) == 2 && complete(7) == -1 && num_used() == 0);
  /* Also behind a place that has become free since; of the receive no message was counted. */
  const uint32_t before = eb_page_current->awaited.requests_left_out;
  CHECK(post(colliding(7, 1), EB_AWAITED_RECEIVE, 1, 1) && post(7, EB_AWAITED_RECEIVE, 2, 2));
  CHECK(complete(colliding(7, 1)) == 1);
  CHECK(post(7, EB_AWAITED_SEND, 3, 3));
  CHECK(num_used() == 1 && eb_page_current->awaited.requests_left_out == before + 1);
  CHECK(complete(7) == 3 && num_used() == 0);
}

/* Several: another thread gets the handle before this one has said that its request has completed. */
static void a_place_that_is_given_back_late(void) {
  eb_awaited_call *const call = eb_awaited_call_of(1);
  eb_page_is_shared = true;
  CHECK(post(7, EB_AWAITED_RECEIVE, 1, 1) && post(7, EB_AWAITED_RECEIVE, 2, 2));
  call->serial = 5;
  eb_awaited_mark(7, 1);
  CHECK(call->num == 1 && call->num_left_out == 0);
  for (int p = 0; p < EB_AWAITED_REQUESTS; p++)
    if (eb_page_current->keys[p]) CHECK((eb_page_current->requests[p].thread == 1) == (eb_page_current->requests[p].tag == 2));
  CHECK(complete(7) == 1 && complete(7) == 2 && complete(7) == -1);
  eb_awaited_mark(8, 1);
  CHECK(call->num_left_out == 1); /* of which nothing is known */
}

static void requests_that_are_complete(void) {
  const uint32_t before = eb_page_current->awaited.requests_left_out;
  eb_awaited_call *const call = eb_awaited_call_of(2);
  eb_awaited_done_send = 9;
  CHECK(!post(9, EB_AWAITED_SEND, 1, 1) && eb_page_current->awaited.requests_left_out == before);
  eb_awaited_mark(9, 2);
  CHECK(call->num == 1 && call->num_left_out == 0);
  CHECK(!post(9, EB_AWAITED_RECEIVE, 1, 1) && eb_page_current->awaited.requests_left_out == before + 1);
  eb_awaited_done_send = EB_AWAITED_TAKEN;
}

enum { THREADS = 4, ROUNDS = 20000 };

/* All threads have keys in the same places, and some have the same ones; and send the same messages. */
static void *work(void *number) {
  const uint64_t of = (uint64_t)(uintptr_t)number;
  for (int r = 0; r < ROUNDS; r++) {
    const uint64_t keys[] = {colliding(1000, (int)of), colliding(1000, THREADS)};
    for (int k = 0; k < 2; k++) CHECK(post(keys[k], EB_AWAITED_RECEIVE, (int)of, (uint64_t)r));
    eb_awaited_mark(keys[0], (uint32_t)of);
    for (int k = 0; k < 2; k++) CHECK(complete(keys[k]) != -2);
    eb_awaited_message(true, 1, 3, r % 5, 8);
  }
  return NULL;
}

static void several_threads(void) {
  pthread_t threads[THREADS];
  uint64_t sent = 0;
  const uint32_t before = eb_page_current->awaited.requests_left_out;
  for (uintptr_t t = 0; t < THREADS; t++) CHECK(pthread_create(&threads[t], NULL, work, (void *)t) == 0);
  for (int t = 0; t < THREADS; t++) CHECK(pthread_join(threads[t], NULL) == 0);
  for (int c = 0; c < EB_AWAITED_CHANNELS; c++) sent += eb_page_current->channels[c].sent;
  CHECK(sent == (uint64_t)THREADS * ROUNDS);
  CHECK(num_used() == 0 && eb_page_current->awaited.requests_left_out == before);
  CHECK(eb_page_current->awaited.channels_left_out == 0);
}

int main(void) {
  keys_that_collide();
  eb_page_is_shared = true;
  keys_that_collide();
  a_handle_that_is_used_again();
  a_place_that_is_given_back_late();
  requests_that_are_complete();
  eb_page_is_shared = true;
  several_threads();
  puts("right");
  return 0;
}
