/* Whether all of a transfer, or a partition of it, has arrived: asked or waited for, by one thread at a time. */
#include <sched.h>

#include "partitioned/adaptation/adapt.h"
#include "partitioned/wire/buffer.h"
#include "partitioned/channel/channel.h"
#include "partitioned/channel/issue.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/statistics/record.h"
#include "partitioned/wire/wire.h"
#include "partitioned/process/world.h"

/* Tests the segments one by one, to distinguish their arrivals. */
static int test_each(eb_channel *channel, bool *done) {
  *done = true;
  for (int s = 0; s < channel->segments.num; s++) {
    eb_segment_state *state = &channel->states[s];
    if (atomic_load_explicit(&state->arrived, memory_order_relaxed)) continue;
    int flag = 1;
    if (channel->requests[s] != MPI_REQUEST_NULL) {
      const int rc = eb_wire_test_one(channel, s, &flag);
      if (rc != MPI_SUCCESS) return rc;
    }
    if (flag) {
      if (!channel->is_send) eb_record_segment_arrived(channel, s);
      atomic_store_explicit(&state->arrived, true, memory_order_release);
    }
    *done = *done && flag;
  }
  if (*done && channel->requests[channel->segments.num] != MPI_REQUEST_NULL) {
    int flag = 0;
    const int rc = eb_wire_test_one(channel, channel->segments.num, &flag);
    *done = flag;
    return rc;
  }
  return MPI_SUCCESS;
}

static bool has_arrived(const eb_channel *channel, int partition) {
  const eb_segment_range segments = eb_partition_segments(channel, partition);
  for (int s = segments.first; s <= segments.last; s++)
    if (!atomic_load_explicit(&channel->states[s].arrived, memory_order_relaxed)) return false;
  return true;
}

/* Hands partitions over whose segments are known to have arrived: all of them, where `all`. For the thread that has the
 * channel. */
static int unpack(eb_channel *channel, bool all) {
  int rc = MPI_SUCCESS;
  for (int p = 0; channel->staging && rc == MPI_SUCCESS && p < channel->num_partitions; p++) {
    eb_partition_state *partition = eb_partition(channel, p);
    if (atomic_load_explicit(&partition->done_at, memory_order_relaxed) == channel->generation) continue;
    if (!all && !has_arrived(channel, p)) continue;
    rc = eb_buffer_unpack(channel, p);
    atomic_store_explicit(&partition->done_at, channel->generation, memory_order_release);
  }
  return rc;
}

/* Progresses a channel until only the MPI's requests are left; *ready: this state is reached. */
static int prepare(eb_channel *channel, bool *ready) {
  *ready = false;
  eb_send_queue_progress();
  if (channel->is_deferred) {
    const int rc = eb_channel_post_deferred(channel);
    if (rc != MPI_SUCCESS || channel->is_deferred) return rc;
  }
  if (channel->is_send && atomic_load_explicit(&channel->num_unissued, memory_order_acquire) > 0) {
    eb_issue_drain(channel);
    if (atomic_load_explicit(&channel->num_unissued, memory_order_acquire) > 0) {
      /* Segments that have left still need the MPI's progress; a probe makes it without touching them. */
      int flag;
      return PMPI_Iprobe(MPI_ANY_SOURCE, eb_tags_control(&eb_domain.tags, EB_CONTROL_SETUP), eb_domain.comm, &flag, MPI_STATUS_IGNORE);
    }
  }
  if (channel->proposes) eb_adapt_propose(channel);
  *ready = true;
  return atomic_load_explicit(&channel->error, memory_order_relaxed);
}

/* Are all segments complete, and the plan? */
static int test_all(eb_channel *channel, bool *done) {
  return eb_record_on ? test_each(channel, done) : eb_wire_test(channel, done);
}

/* Takes a channel for this thread; false while another one has it: the status of a request and the arrival of a
 * partition may be asked for while another thread waits. */
static bool take_for_testing(eb_channel *channel) {
  return !atomic_flag_test_and_set_explicit(&channel->testing, memory_order_acquire);
}

static void let_go(eb_channel *channel) { atomic_flag_clear_explicit(&channel->testing, memory_order_release); }

/* The same, and the MPI with it, for one look at both. */
static bool take_for_a_look(eb_channel *channel) {
  if (!take_for_testing(channel)) return false;
  if (eb_mpi_try_enter()) return true;
  let_go(channel);
  return false;
}

static void end_look(eb_channel *channel) {
  eb_mpi_leave();
  let_go(channel);
}

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

int eb_channel_test(eb_channel *channel, bool *done) {
  *done = false;
  bool ready;
  if (!take_for_a_look(channel)) {
    give_way(true);
    return MPI_SUCCESS;
  }
  int rc = prepare(channel, &ready);
  if (rc == MPI_SUCCESS && ready && channel->is_copying) *done = true; /* the send queue owns the copies */
  else if (rc == MPI_SUCCESS && ready) rc = test_all(channel, done);
  end_look(channel);
  if (!*done) give_way(false);
  return rc;
}

/* Are setups expected that a thread should process meanwhile? libfabric's tcp provider, which Intel MPI and MPICH use,
 * stops receiving from a peer that has 64 unexpected messages (FI_TCP_MAX_SAVED): the awaited message could be behind them. */
static bool expects_setups(void) { return eb_matching_num_posted() > 0; }

/* May a thread test partitions, and depend on the result, while another one waits for all of them? */
static bool may_be_asked(const eb_channel *channel) {
  return eb_world.multiple && !channel->is_send && channel->segments.num > 1;
}

/* May this thread block inside the MPI until everything has arrived? */
static bool may_block(const eb_channel *channel) {
  return !eb_channel_awaits_answer(channel) && !eb_record_on && !expects_setups() && !may_be_asked(channel) && !eb_issue_is_open();
}

/* Tests once a channel that this thread holds, or blocks if no other thread needs it to return. */
static int look(eb_channel *channel, bool *done) {
  bool ready;
  int rc = prepare(channel, &ready);
  *done = false;
  if (rc != MPI_SUCCESS) return rc;
  if (ready) {
    *done = true;
    if (channel->is_copying) return rc;
    if (may_block(channel)) return eb_wire_wait(channel);
    if (atomic_exchange_explicit(&channel->is_asked, false, memory_order_relaxed)) {
      rc = test_each(channel, done);
      if (rc == MPI_SUCCESS) rc = unpack(channel, false);
    } else {
      rc = test_all(channel, done);
    }
  }
  if (rc == MPI_SUCCESS && !*done && expects_setups()) eb_matching_progress();
  if (rc == MPI_SUCCESS && !*done && eb_channel_awaits_answer(channel)) eb_matching_collect();
  return rc;
}

static int wait_for(eb_channel *channel) {
  for (;;) {
    bool done;
    eb_mpi_enter();
    const int rc = look(channel, &done);
    eb_mpi_leave();
    if (rc != MPI_SUCCESS || done) return rc;
    sched_yield(); /* other threads of this process may need this core */
  }
}

int eb_channel_wait(eb_channel *channel) {
  const double begin_s = eb_record_on ? eb_now_s() : 0;
  while (!take_for_testing(channel)) sched_yield();
  const int rc = wait_for(channel);
  let_go(channel);
  if (eb_record_on) eb_record_waited(channel, begin_s);
  return rc;
}

int eb_channel_deliver(eb_channel *channel) {
  if (channel->is_send || !channel->staging) return MPI_SUCCESS;
  while (!take_for_testing(channel)) sched_yield();
  eb_mpi_enter();
  const int rc = unpack(channel, true);
  end_look(channel);
  return rc;
}

static bool is_all_ready(const eb_channel *channel) {
  for (int s = 0; s < channel->segments.num; s++)
    if (atomic_load_explicit(&channel->states[s].num_unready, memory_order_acquire) > 0) return false;
  return true;
}

/* Have all segments arrived (or left), regardless of a plan that is sent with them? */
static int test_segments(eb_channel *channel, bool *done) {
  int flag = 1, rc = MPI_SUCCESS;
  for (int s = 0; rc == MPI_SUCCESS && flag && s < channel->segments.num; s++)
    if (channel->requests[s] != MPI_REQUEST_NULL) rc = eb_wire_test_one(channel, s, &flag);
  *done = flag;
  return rc;
}

/* A receiver's plan was sent before its data, by a sender that needs nothing of us for it; its tag will be used again. */
static int end_receiver(eb_channel *channel, bool *ended) {
  bool ready;
  int rc = prepare(channel, &ready);
  if (rc == MPI_SUCCESS && ready) rc = test_segments(channel, ended);
  return rc == MPI_SUCCESS && *ended ? eb_wire_wait(channel) : rc;
}

/* Waiting for the receiver could deadlock: it may be in a call that waits for this rank. So the messages stay in flight. */
static int end_sender(eb_channel *channel, bool *ended, bool *is_in_flight) {
  bool ready = false, done = true;
  if (!is_all_ready(channel)) return MPI_SUCCESS;
  *ended = true;
  while (!ready) { /* another thread may be about to send the last segment */
    const int rc = prepare(channel, &ready);
    if (rc != MPI_SUCCESS) return rc;
  }
  const int rc = channel->is_copying ? MPI_SUCCESS : test_segments(channel, &done);
  if (rc != MPI_SUCCESS || done) return rc;
  *is_in_flight = true;
  if (eb_send_queue_adopt(EB_SEND_DATA, channel->segments.num, channel->requests, channel->staging) != MPI_SUCCESS)
    return eb_wire_wait(channel);
  channel->requests = NULL;
  channel->staging = NULL;
  return MPI_SUCCESS;
}

int eb_channel_end(eb_channel *channel, bool *ended, bool *is_in_flight) {
  *ended = *is_in_flight = false;
  while (!take_for_testing(channel)) sched_yield();
  eb_mpi_enter();
  const int rc = channel->is_send ? end_sender(channel, ended, is_in_flight) : end_receiver(channel, ended);
  end_look(channel);
  if (rc != MPI_SUCCESS) {
    *ended = true;
    return eb_channel_fail(channel, rc);
  }
  return *ended ? eb_channel_finish(channel, MPI_STATUS_IGNORE) : MPI_SUCCESS;
}

/* Is a partition known to have arrived, and unpacked? Without asking the MPI. */
static bool is_at_hand(const eb_channel *channel, int partition) {
  /* Which segments these are is known no sooner: with the setup they may change. */
  if (channel->is_deferred) return false;
  const eb_segment_range segments = eb_partition_segments(channel, partition);
  for (int s = segments.first; s <= segments.last; s++)
    if (!atomic_load_explicit(&channel->states[s].arrived, memory_order_acquire)) return false;
  return !channel->staging || atomic_load_explicit(&eb_partition(channel, partition)->done_at, memory_order_acquire) == channel->generation;
}

/* For the thread that has the channel. */
static int ask(eb_channel *channel, int partition, bool *arrived) {
  eb_partition_state *state = eb_partition(channel, partition);
  int rc = channel->is_deferred ? eb_channel_post_deferred(channel) : MPI_SUCCESS;
  *arrived = !channel->is_deferred;
  const eb_segment_range segments = *arrived ? eb_partition_segments(channel, partition) : (eb_segment_range){0, 0};
  for (int s = segments.first; rc == MPI_SUCCESS && *arrived && s <= segments.last; s++) {
    eb_segment_state *segment = &channel->states[s];
    if (atomic_load_explicit(&segment->arrived, memory_order_relaxed)) continue;
    int flag = 1;
    if (channel->requests[s] != MPI_REQUEST_NULL) rc = eb_wire_test_one(channel, s, &flag); /* else MPI_PROC_NULL */
    if (flag && !atomic_exchange_explicit(&segment->arrived, true, memory_order_release) && eb_record_on)
      eb_record_segment_arrived(channel, s);
    *arrived = flag;
  }
  if (rc == MPI_SUCCESS && *arrived && channel->staging &&
      atomic_load_explicit(&state->done_at, memory_order_relaxed) != channel->generation) {
    rc = eb_buffer_unpack(channel, partition);
    atomic_store_explicit(&state->done_at, channel->generation, memory_order_release);
  }
  return rc;
}

int eb_channel_parrived(eb_channel *channel, int partition, bool *arrived) {
  *arrived = is_at_hand(channel, partition);
  if (*arrived) return MPI_SUCCESS;
  /* One thread asks; the others see what it found. */
  if (!take_for_a_look(channel)) {
    atomic_store_explicit(&channel->is_asked, true, memory_order_relaxed); /* the thread that holds it tests */
    give_way(true);
    return MPI_SUCCESS;
  }
  const int rc = ask(channel, partition, arrived);
  end_look(channel);
  if (!*arrived) give_way(false);
  return rc;
}
