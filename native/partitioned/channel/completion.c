/* Whether all of a transfer, or a partition of it, has arrived: tested or waited for, by one thread at a time. */
#include <sched.h>

#include "partitioned/adaptation/unread.h"
#include "partitioned/channel/channel.h"
#include "partitioned/channel/issue.h"
#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/world.h"
#include "partitioned/wire/node_direct.h"

static int num_segments(const eb_channel *channel) { return eb_wire_segments(&channel->wire)->num; }

/* Tests a segment, unless it is known to have arrived. */
static int test_segment(eb_channel *channel, int segment, bool *done) {
  *done = eb_tracking_has_arrived(&channel->tracking, segment);
  if (*done) return MPI_SUCCESS;
  const int rc = eb_wire_test_one(&channel->wire, segment, done);
  if (rc != MPI_SUCCESS || !*done) return rc;
  if (eb_tracking_set_arrived(&channel->tracking, segment) && eb_statistics_on && !channel->transfer.is_send)
    eb_statistics_segment_arrived(&channel->statistics, segment, eb_wire_segment_bytes(&channel->wire, segment));
  return rc;
}

/* Tests the segments one by one, to distinguish their arrivals, and the segmentation message. */
static int test_each(eb_channel *channel, bool *done) {
  const int num = num_segments(channel);
  *done = true;
  for (int s = 0; s < num; s++) {
    bool has_arrived;
    const int rc = test_segment(channel, s, &has_arrived);
    if (rc != MPI_SUCCESS) return rc;
    *done = *done && has_arrived;
  }
  const int rc = *done ? eb_wire_test_one(&channel->wire, num, done) : MPI_SUCCESS;
  *done = *done && eb_wire_next_is_free(&channel->wire);
  return rc;
}

/* Unpacks a partition, once. For the thread that has the channel. */
static int unpack_one(eb_channel *channel, int partition) {
  if (!eb_buffer_is_staged(&channel->buffer) || eb_tracking_is_unpacked(&channel->tracking, partition)) return MPI_SUCCESS;
  const int rc = eb_buffer_unpack(&channel->buffer, partition);
  eb_tracking_set_unpacked(&channel->tracking, partition);
  return rc;
}

/* Unpacks the partitions whose segments are known to have arrived: all of them, if `all`. */
static int unpack(eb_channel *channel, bool all) {
  int rc = MPI_SUCCESS;
  if (!eb_buffer_is_staged(&channel->buffer)) return rc;
  for (int p = 0; rc == MPI_SUCCESS && p < channel->transfer.num_partitions; p++)
    if (all || eb_tracking_is_covered(&channel->tracking, p)) rc = unpack_one(channel, p);
  return rc;
}

/* Progresses a channel until only the MPI's requests are left; *ready: this state is reached. */
static int prepare(eb_channel *channel, bool *ready) {
  *ready = false;
  eb_send_queue_progress();
  (void)eb_unread_progress();
  (void)eb_node_direct_progress();
  if (channel->is_deferred) {
    const int rc = eb_channel_post_deferred(channel);
    if (rc != MPI_SUCCESS || channel->is_deferred) return rc;
  }
  if (eb_wire_has_unsent(&channel->wire)) {
    eb_issue_drain(channel);
    if (eb_wire_has_unsent(&channel->wire)) {
      return eb_wire_progress(&channel->wire); /* which segments that have left still need */
    }
  }
  if (eb_adaptation_proposes(&channel->adaptation)) eb_adaptation_propose(&channel->adaptation);
  *ready = true;
  return eb_wire_error(&channel->wire);
}

/* Are all segments complete, and the segmentation message? */
static int test_all(eb_channel *channel, bool *done) {
  return eb_statistics_on ? test_each(channel, done) : eb_wire_test(&channel->wire, done);
}

/* Acquires a channel for this thread; false while another one has it: the status of a request and the arrival of a
 * partition may be asked for while another thread waits. */
static bool acquire(eb_channel *channel) { return !atomic_flag_test_and_set_explicit(&channel->testing, memory_order_acquire); }

static void release(eb_channel *channel) { atomic_flag_clear_explicit(&channel->testing, memory_order_release); }

/* The same, and enters the MPI. */
static bool acquire_with_mpi(eb_channel *channel) {
  if (!acquire(channel)) return false;
  if (eb_mpi_try_enter()) return true;
  release(channel);
  return false;
}

static void release_with_mpi(eb_channel *channel) {
  eb_mpi_leave();
  release(channel);
}

/* Looks for about a microsecond each, then the MPI is called. */
#define NUM_ROUNDS_BEFORE_YIELD 8u

/* Of a thread: each of them may poll without a core of its own. */
#define NUM_FALSE_BEFORE_YIELD 64u
static _Thread_local unsigned num_false __attribute__((tls_model("initial-exec")));

/* After an unsuccessful test: another thread may need this core. Threads that poll without yielding kept other threads of
 * the process, or of a peer, from running until their time slices ended (4 threads on 2 cores: 16 ms per start). Yields
 * immediately if another thread holds the channel, because testing again before it is done is useless. Otherwise yields from
 * time to time: on an idle core sched_yield takes 0.3 us, and a test by the MPI 0.05 to 0.1 us. */
static void give_way(bool is_held) {
  if (is_held || ++num_false % NUM_FALSE_BEFORE_YIELD == 0) sched_yield();
}

/* Is everything known to have arrived? Without asking the MPI. */
static bool is_known_to_be_complete(const eb_channel *channel) {
  if (channel->transfer.is_send || channel->is_deferred || *eb_wire_segmentation_request(&channel->wire) != MPI_REQUEST_NULL)
    return false;
  for (int s = 0; s < num_segments(channel); s++)
    if (!eb_tracking_has_arrived(&channel->tracking, s)) return false;
  return eb_wire_error(&channel->wire) == MPI_SUCCESS;
}

int eb_channel_test(eb_channel *channel, bool *done) {
  bool ready;
  *done = false;
  if (!acquire(channel)) {
    give_way(true);
    return MPI_SUCCESS;
  }
  *done = !eb_statistics_on && is_known_to_be_complete(channel);
  if (*done || !eb_mpi_try_enter()) {
    release(channel);
    if (!*done) give_way(true);
    return MPI_SUCCESS;
  }
  int rc = prepare(channel, &ready);
  if (rc == MPI_SUCCESS && ready && eb_wire_is_copying(&channel->wire)) *done = true; /* the send queue owns the copies */
  else if (rc == MPI_SUCCESS && ready) rc = test_all(channel, done);
  if (rc == MPI_SUCCESS && !*done && eb_wire_is_in_memory(&channel->wire)) rc = eb_wire_progress(&channel->wire);
  release_with_mpi(channel);
  if (!*done) give_way(false);
  return rc;
}

/* Are setups expected that a thread should process meanwhile? libfabric's tcp provider, which Intel MPI and MPICH use,
 * stops receiving from a peer that has 64 unexpected messages (FI_TCP_MAX_SAVED): the awaited message could be behind them. */
static bool expects_setups(void) { return eb_matching_num_posted() > 0; }

/* May a thread test partitions, and depend on the result, while another one waits for all of them? */
static bool may_be_asked(const eb_channel *channel) {
  return eb_world.multiple && !channel->transfer.is_send && num_segments(channel) > 1;
}

/* May this thread block inside the MPI until everything has arrived? Not on one of several lanes: the others need progress. */
static bool may_block(const eb_channel *channel) {
  return !eb_match_awaits_answer(&channel->match) && !eb_statistics_on && !expects_setups() && !may_be_asked(channel) &&
         !eb_issue_is_open() && !eb_wire_is_framed(&channel->wire) && !eb_wire_is_in_memory(&channel->wire) &&
         eb_wire_next_is_free(&channel->wire) && eb_wire_num_lanes(&channel->wire) == 1;
}

/* Tests once a channel that this thread holds, or blocks if no other thread needs it to return. */
static int test_or_block(eb_channel *channel, bool *done) {
  bool ready;
  int rc = prepare(channel, &ready);
  *done = false;
  if (rc != MPI_SUCCESS) return rc;
  if (ready) {
    *done = true;
    if (eb_wire_is_copying(&channel->wire)) return rc;
    if (may_block(channel)) return eb_wire_wait(&channel->wire);
    if (atomic_load_explicit(&channel->is_asked, memory_order_relaxed) &&
        atomic_exchange_explicit(&channel->is_asked, false, memory_order_relaxed)) {
      rc = test_each(channel, done);
      if (rc == MPI_SUCCESS) rc = unpack(channel, false);
    } else {
      rc = test_all(channel, done);
    }
  }
  if (rc == MPI_SUCCESS && !*done && expects_setups()) eb_matching_progress();
  if (rc == MPI_SUCCESS && !*done && eb_match_awaits_answer(&channel->match)) eb_matching_collect();
  return rc;
}

/* Waits for what comes in shared memory, which needs no MPI; but other messages of this process do, also while a test after another
 * copies. */
static int spin(eb_channel *channel, unsigned round) {
  const bool has_come = eb_wire_spin(&channel->wire);
  if (has_come && eb_wire_is_on_ring(&channel->wire)) return MPI_SUCCESS;
  eb_mpi_enter();
  const int rc = eb_wire_progress(&channel->wire);
  eb_mpi_leave();
  if (eb_world.is_crowded || round % NUM_ROUNDS_BEFORE_YIELD == NUM_ROUNDS_BEFORE_YIELD - 1) sched_yield();
  return rc;
}

static int wait_for(eb_channel *channel) {
  for (unsigned round = 0;; round++) {
    bool done;
    eb_mpi_enter();
    int rc = test_or_block(channel, &done);
    eb_mpi_leave();
    if (rc != MPI_SUCCESS || done) return rc;
    if (eb_wire_is_in_memory(&channel->wire)) rc = spin(channel, round);
    else sched_yield(); /* other threads of this process may need this core */
    if (rc != MPI_SUCCESS) return rc;
  }
}

int eb_channel_wait(eb_channel *channel) {
  if (!eb_statistics_on && is_known_to_be_complete(channel)) return MPI_SUCCESS;
  const double begin_s = eb_statistics_on ? eb_now_s() : 0;
  while (!acquire(channel)) sched_yield();
  eb_wire_set_waiting(&channel->wire, true);
  const int rc = wait_for(channel);
  eb_wire_set_waiting(&channel->wire, false);
  release(channel);
  if (eb_statistics_on) eb_statistics_waited(&channel->statistics, num_segments(channel), begin_s);
  return rc;
}

/* Another thread may ask for a partition meanwhile. */
int eb_channel_fail(eb_channel *channel, int code) {
  while (!acquire(channel)) sched_yield();
  eb_mpi_enter();
  eb_channel_abandon(channel, code);
  release_with_mpi(channel);
  return code;
}

int eb_channel_deliver(eb_channel *channel) {
  if (channel->transfer.is_send || !eb_buffer_is_staged(&channel->buffer)) return MPI_SUCCESS;
  while (!acquire(channel)) sched_yield();
  eb_mpi_enter();
  const int rc = unpack(channel, true);
  release_with_mpi(channel);
  return rc;
}

/* The segmentation message was sent before the data, by a sender that needs no answer; its tag will be used again. */
static int end_receiver(eb_channel *channel, bool *ended) {
  bool ready;
  int rc = prepare(channel, &ready);
  if (rc == MPI_SUCCESS && ready) rc = eb_wire_test_segments(&channel->wire, ended);
  return rc == MPI_SUCCESS && *ended ? eb_wire_wait(&channel->wire) : rc;
}

/* Waiting for the receiver could deadlock: it may be in a call that waits for this rank. So the messages stay in flight. */
static int end_sender(eb_channel *channel, bool *ended, bool *is_in_flight) {
  bool ready = false, done = true;
  if (!eb_tracking_is_ready(&channel->tracking)) return MPI_SUCCESS;
  *ended = true;
  while (!ready) { /* another thread may be about to send the last segment */
    const int rc = prepare(channel, &ready);
    if (rc != MPI_SUCCESS) return rc;
  }
  const int rc = eb_wire_sends_copies(&channel->wire) ? MPI_SUCCESS : eb_wire_test_segments(&channel->wire, &done);
  if (rc != MPI_SUCCESS || done) return rc;
  *is_in_flight = true;
  return eb_wire_leave_in_flight(&channel->wire) == MPI_SUCCESS ? MPI_SUCCESS : eb_wire_wait(&channel->wire);
}

int eb_channel_end(eb_channel *channel, bool *ended, bool *is_in_flight) {
  *ended = *is_in_flight = false;
  while (!acquire(channel)) sched_yield();
  eb_mpi_enter();
  const int rc = channel->transfer.is_send ? end_sender(channel, ended, is_in_flight) : end_receiver(channel, ended);
  release_with_mpi(channel);
  if (rc != MPI_SUCCESS) {
    *ended = true;
    return eb_channel_fail(channel, rc);
  }
  return *ended ? eb_channel_finish(channel, MPI_STATUS_IGNORE) : MPI_SUCCESS;
}

/* Is a partition known to have arrived, and unpacked? Without asking the MPI. */
static bool is_known_to_have_arrived(const eb_channel *channel, int partition) {
  /* Which segments these are is not known before: with the setup they may change. */
  if (channel->is_deferred || !eb_tracking_is_covered(&channel->tracking, partition)) return false;
  return !eb_buffer_is_staged(&channel->buffer) || eb_tracking_is_unpacked(&channel->tracking, partition);
}

/* For the thread that has the channel. */
static int ask(eb_channel *channel, int partition, bool *arrived) {
  int rc = eb_wire_error(&channel->wire); /* the requests of a failed start are complete, and their data is not here */
  if (rc == MPI_SUCCESS && channel->is_deferred) rc = eb_channel_post_deferred(channel);
  *arrived = rc == MPI_SUCCESS && !channel->is_deferred;
  if (rc != MPI_SUCCESS || !*arrived) return rc;
  const eb_segment_range range = eb_tracking_range(&channel->tracking, partition);
  for (int s = range.first; rc == MPI_SUCCESS && *arrived && s <= range.last; s++) rc = test_segment(channel, s, arrived);
  if (rc == MPI_SUCCESS && !*arrived && eb_wire_is_in_memory(&channel->wire)) rc = eb_wire_progress(&channel->wire);
  return rc == MPI_SUCCESS && *arrived ? unpack_one(channel, partition) : rc;
}

int eb_channel_parrived(eb_channel *channel, int partition, bool *arrived) {
  *arrived = is_known_to_have_arrived(channel, partition);
  if (*arrived) return MPI_SUCCESS;
  /* One thread asks; the others see what it found. */
  if (!acquire_with_mpi(channel)) {
    atomic_store_explicit(&channel->is_asked, true, memory_order_relaxed); /* the thread that holds it tests */
    give_way(true);
    return MPI_SUCCESS;
  }
  const int rc = ask(channel, partition, arrived);
  release_with_mpi(channel);
  if (!*arrived) give_way(false);
  return rc;
}
