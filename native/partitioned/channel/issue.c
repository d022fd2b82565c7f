/* Per lane, a ring of complete segments; the thread that holds the lock empties it. */
#include "partitioned/channel/issue.h"

#include <sched.h>

#include "partitioned/channel/send.h"
#include "partitioned/process/thread.h"
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
  _Alignas(64) _Atomic uint64_t given; /* places handed out so far */
  _Atomic uint64_t taken;              /* places emptied so far; written by the thread that holds `sending` */
  _Alignas(64) waiting ring[RING_SIZE];
} lanes[EB_MAX_LANES];

/* Started senders that have segments left to send; only below MPI_THREAD_MULTIPLE, by threads that have entered the MPI. */
static int num_open;
/* The same of those whose segments are sent by any number of threads. */
static atomic_int num_open_alone;

/* Below MPI_THREAD_MULTIPLE all channels share one lock, because it guards the MPI itself. */
static int lane_of(const eb_channel *channel, int segment) {
  return eb_world.multiple ? eb_wire_sending_lane(&channel->wire, segment) : 0;
}

/* Below MPI_THREAD_MULTIPLE most programs have no thread in MPI calls but the one that has called MPI_Init: it locks by plain
 * stores until another thread locks, which takes that right away once and for all. A locked instruction takes 7 ns, and a start
 * locks eight times. What the favourite has just stored can be read after a barrier in all threads (eb_thread_fence_owner): then
 * either it is seen to have the lock, or it will see that it has lost its right. */
static struct {
  const void *thread; /* NULL: none */
  atomic_bool has_lock;
  atomic_bool is_over;    /* it locks like the others */
  atomic_bool is_settled; /* and does not have the lock from before */
} favourite;

void eb_issue_begin(void) {
  favourite.thread = eb_thread_owner();
  atomic_store(&favourite.has_lock, false);
  atomic_store(&favourite.is_over, false);
  atomic_store(&favourite.is_settled, favourite.thread == NULL);
}

static bool try_lock_as_favourite(void) {
  atomic_store_explicit(&favourite.has_lock, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
  if (__builtin_expect(!atomic_load_explicit(&favourite.is_over, memory_order_acquire), 1)) return true;
  atomic_store_explicit(&favourite.has_lock, false, memory_order_release);
  return false;
}

/* For another thread: false while the favourite has the lock, which looks for waiting segments when it has left it. */
__attribute__((noinline)) static bool depose_favourite(void) {
  eb_thread_end_owners();
  atomic_store(&favourite.is_over, true);
  eb_thread_fence_owner();
  if (atomic_load(&favourite.has_lock)) return false;
  atomic_store(&favourite.is_settled, true);
  return true;
}

static bool try_lock(int lane) {
  if (!atomic_load_explicit(&favourite.is_settled, memory_order_acquire)) {
    if (favourite.thread == eb_thread_id()) {
      if (atomic_load_explicit(&favourite.has_lock, memory_order_relaxed)) return false;
      if (try_lock_as_favourite()) return true;
    } else if (!depose_favourite()) {
      return false;
    }
  }
  return !atomic_flag_test_and_set_explicit(&lanes[lane].sending, memory_order_seq_cst);
}

static void unlock(int lane) {
  if (favourite.thread == eb_thread_id() && atomic_load_explicit(&favourite.has_lock, memory_order_relaxed)) {
    atomic_store_explicit(&favourite.has_lock, false, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
  } else {
    atomic_flag_clear_explicit(&lanes[lane].sending, memory_order_seq_cst);
  }
}

static waiting *place_of(int lane, uint64_t number) { return &lanes[lane].ring[number % RING_SIZE]; }

static unsigned turn_when_free(uint64_t number) { return (unsigned)(number / RING_SIZE * 2); }

static bool is_full(int lane, uint64_t number) {
  return atomic_load_explicit(&place_of(lane, number)->turn, memory_order_seq_cst) == turn_when_free(number) + 1;
}

/* The channel may be freed once its last segment is sent. */
static void send_one(eb_channel *channel, int segment) {
  if (eb_channel_send(channel, segment) && !eb_world.multiple) num_open--;
}

static uint64_t num_taken(int lane) { return atomic_load_explicit(&lanes[lane].taken, memory_order_relaxed); }

static void send_waiting(int lane) {
  for (uint64_t number = num_taken(lane); is_full(lane, number);) {
    waiting *place = place_of(lane, number);
    eb_channel *const channel = place->channel;
    const int segment = place->segment;
    atomic_store_explicit(&place->turn, turn_when_free(number + RING_SIZE), memory_order_release);
    atomic_store_explicit(&lanes[lane].taken, ++number, memory_order_relaxed);
    send_one(channel, segment);
  }
}

/* Checks again after it has released the lock: a thread that found the lock taken has left its segment to this thread. */
static void send_and_unlock(int lane) {
  uint64_t next;
  do {
    send_waiting(lane);
    next = num_taken(lane);
    unlock(lane);
  } while (is_full(lane, next) && try_lock(lane));
}

static void drain(int lane) {
  if (try_lock(lane)) send_and_unlock(lane);
}

/* Reads only where nothing waits, so that a thread that polls does not slow down those that send. */
void eb_issue_drain(const eb_channel *channel) {
  const int num_lanes = eb_world.multiple ? eb_wire_num_lanes(&channel->wire) : 0;
  if (!eb_world.multiple) send_waiting(0);
  for (int k = 0; k < num_lanes; k++) {
    const int lane = eb_wire_lane_at(&channel->wire, k);
    if (atomic_load_explicit(&lanes[lane].given, memory_order_relaxed) != num_taken(lane)) drain(lane);
  }
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
  const int lane = lane_of(channel, segment); /* the channel may be freed once its last segment is sent */
  if (try_lock(lane)) {
    send_one(channel, segment);
    send_and_unlock(lane);
    return;
  }
  if (eb_statistics_on) eb_statistics_lane_taken(lane);
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

void eb_issue_opened(const eb_channel *channel) {
  if (eb_world.multiple) return;
  if (eb_wire_sends_alone(&channel->wire)) atomic_fetch_add_explicit(&num_open_alone, 1, memory_order_relaxed);
  else num_open++;
}

void eb_issue_alone(eb_channel *channel, int segment) {
  if (eb_channel_send(channel, segment) && !eb_world.multiple) atomic_fetch_sub_explicit(&num_open_alone, 1, memory_order_relaxed);
}

bool eb_issue_is_open(void) {
  return !eb_world.multiple && (num_open > 0 || atomic_load_explicit(&num_open_alone, memory_order_relaxed) > 0);
}
