/* Per lane, a ring of complete segments; the thread that holds the lock empties it. */
#include "partitioned/channel/issue.h"

#include <sched.h>

#include "partitioned/channel/send.h"
#include "partitioned/process/world.h"

/* A power of two. More than can be complete at once in most programs; where it is full, threads wait for one another. */
#define RING_SIZE 256u

/* Four to a cache line: because they hold the segment's number, the thread that sends need not fetch the state that the
 * thread which completed the segment has just written. In its n-th use (from 0) a place is free while its turn is 2n,
 * full while it is 2n + 1. */
typedef struct {
  eb_channel *channel;
  int segment;
  atomic_uint turn;
} waiting;

/* What threads share is on separate cache lines. */
static struct {
  _Alignas(64) atomic_flag sending;
  uint64_t taken; /* places emptied so far; of the thread that holds `sending` */
  _Alignas(64) _Atomic uint64_t given; /* places handed out so far */
  _Alignas(64) waiting ring[RING_SIZE];
} lanes[EB_MAX_LANES];

static atomic_int num_open; /* started senders that have segments left to send; only below MPI_THREAD_MULTIPLE */

/* Below MPI_THREAD_MULTIPLE all channels share one lock, because it guards the MPI itself. */
static int lane_of(const eb_channel *channel) { return eb_world.multiple ? eb_wire_lane(&channel->wire) : 0; }

static bool try_lock(int lane) { return !atomic_flag_test_and_set_explicit(&lanes[lane].sending, memory_order_seq_cst); }

static waiting *place_of(int lane, uint64_t number) { return &lanes[lane].ring[number % RING_SIZE]; }

static unsigned turn_when_free(uint64_t number) { return (unsigned)(number / RING_SIZE * 2); }

static bool is_full(int lane, uint64_t number) {
  return atomic_load_explicit(&place_of(lane, number)->turn, memory_order_seq_cst) == turn_when_free(number) + 1;
}

/* The channel may be freed once its last segment is sent. */
static void send_one(eb_channel *channel, int segment) {
  if (eb_channel_send(channel, segment) && !eb_world.multiple) atomic_fetch_sub_explicit(&num_open, 1, memory_order_relaxed);
}

static void send_waiting(int lane) {
  for (uint64_t number = lanes[lane].taken; is_full(lane, number); lanes[lane].taken = ++number) {
    waiting *place = place_of(lane, number);
    eb_channel *const channel = place->channel;
    const int segment = place->segment;
    atomic_store_explicit(&place->turn, turn_when_free(number + RING_SIZE), memory_order_release);
    send_one(channel, segment);
  }
}

/* Checks again after it has released the lock: a thread that found the lock taken has left its segment to this thread. */
static void send_and_unlock(int lane) {
  uint64_t next;
  do {
    send_waiting(lane);
    next = lanes[lane].taken; /* only used by the lock holder */
    atomic_flag_clear_explicit(&lanes[lane].sending, memory_order_seq_cst);
  } while (is_full(lane, next) && try_lock(lane));
}

static void drain(int lane) {
  if (try_lock(lane)) send_and_unlock(lane);
}

void eb_issue_drain(const eb_channel *channel) {
  if (eb_world.multiple) drain(eb_wire_lane(&channel->wire));
  else send_waiting(0);
}

static void enqueue(int lane, eb_channel *channel, int segment) {
  const uint64_t number = atomic_fetch_add_explicit(&lanes[lane].given, 1, memory_order_relaxed);
  waiting *place = place_of(lane, number);
  while (atomic_load_explicit(&place->turn, memory_order_acquire) != turn_when_free(number)) {
    drain(lane);
    sched_yield(); /* the thread that sends may need this core */
  }
  place->channel = channel;
  place->segment = segment;
  atomic_store_explicit(&place->turn, turn_when_free(number) + 1, memory_order_seq_cst);
}

void eb_issue(eb_channel *channel, int segment) {
  const int lane = lane_of(channel); /* the channel may be freed once its last segment is sent */
  if (try_lock(lane)) {
    send_one(channel, segment);
    send_and_unlock(lane);
    return;
  }
  enqueue(lane, channel, segment);
  drain(lane);
}

bool eb_mpi_try_enter(void) { return eb_world.multiple || try_lock(0); }

void eb_mpi_enter(void) {
  while (!eb_mpi_try_enter()) sched_yield();
}

void eb_mpi_leave(void) {
  if (!eb_world.multiple) send_and_unlock(0);
}

void eb_issue_opened(void) {
  if (!eb_world.multiple) atomic_fetch_add_explicit(&num_open, 1, memory_order_relaxed);
}

bool eb_issue_is_open(void) { return !eb_world.multiple && atomic_load_explicit(&num_open, memory_order_relaxed) > 0; }
