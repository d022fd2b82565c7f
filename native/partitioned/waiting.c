/* Whether all of a transfer, or a partition of it, has arrived: asked or waited for, by one thread at a time. */
#include <sched.h>

#include "partitioned/adapt.h"
#include "partitioned/buffer.h"
#include "partitioned/channel.h"
#include "partitioned/issue.h"
#include "partitioned/outbox.h"
#include "partitioned/record.h"
#include "partitioned/wire.h"
#include "partitioned/world.h"

/* Asks the MPI about the segments one by one, so that arrivals can be told apart. */
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

static bool has_arrived(const eb_channel *channel, const eb_partition_state *partition) {
  for (int s = partition->first_segment; s <= partition->last_segment; s++)
    if (!atomic_load_explicit(&channel->states[s].arrived, memory_order_relaxed)) return false;
  return true;
}

/* Hands partitions over whose segments are known to have arrived: all of them, where `all`. For the thread that has the
 * channel. */
static int unpack(eb_channel *channel, bool all) {
  int rc = MPI_SUCCESS;
  for (int p = 0; channel->staging && rc == MPI_SUCCESS && p < channel->num_partitions; p++) {
    eb_partition_state *partition = eb_partition(channel, p);
    if (atomic_load_explicit(&partition->done_at, memory_order_relaxed) == channel->stamp) continue;
    if (!all && !has_arrived(channel, partition)) continue;
    rc = eb_buffer_unpack(channel, p);
    atomic_store_explicit(&partition->done_at, channel->stamp, memory_order_release);
  }
  return rc;
}

/* Brings a channel to where only the MPI's requests are left; *ready tells whether it is there. */
static int prepare(eb_channel *channel, bool *ready) {
  *ready = false;
  eb_outbox_progress();
  if (channel->is_deferred) {
    const int rc = eb_channel_post_deferred(channel);
    if (rc != MPI_SUCCESS || channel->is_deferred) return rc;
  }
  if (channel->is_send && atomic_load_explicit(&channel->num_unissued, memory_order_acquire) > 0) {
    eb_issue_drain(channel->lane);
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

int eb_channel_test(eb_channel *channel, bool *done) {
  *done = false;
  bool ready;
  if (!take_for_testing(channel)) return MPI_SUCCESS;
  int rc = prepare(channel, &ready);
  if (rc == MPI_SUCCESS && ready && channel->is_copying) *done = true; /* the copies are the outbox's */
  else if (rc == MPI_SUCCESS && ready) rc = test_all(channel, done);
  let_go(channel);
  return rc;
}

/* Are setups to come, which somebody should take in meanwhile? libfabric's tcp provider, which Intel MPI and MPICH use,
 * stops receiving from a peer that has 64 unexpected messages (FI_TCP_MAX_SAVED): what we wait for could be behind them. */
static bool expects_setups(void) { return eb_matching_num_posted() > 0; }

/* May a thread ask for partitions, and depend on the answer, while another one waits for all of them? */
static bool may_be_asked(const eb_channel *channel) {
  return eb_world.multiple && !channel->is_send && channel->segments.num > 1;
}

static int wait_for(eb_channel *channel) {
  for (;;) {
    bool ready;
    int rc = prepare(channel, &ready);
    if (rc != MPI_SUCCESS) return rc;
    if (ready) {
      if (channel->is_copying) return MPI_SUCCESS;
      if (!eb_record_on && !expects_setups() && !may_be_asked(channel)) return eb_wire_wait(channel);
      if (atomic_exchange_explicit(&channel->is_asked, false, memory_order_relaxed)) {
        rc = test_each(channel, &ready);
        if (rc == MPI_SUCCESS) rc = unpack(channel, false);
      } else {
        rc = test_all(channel, &ready);
      }
      if (rc != MPI_SUCCESS || ready) return rc;
    }
    if (expects_setups()) eb_matching_progress();
    sched_yield(); /* other threads of ours are to be waited for: they may need this core */
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
  const int rc = unpack(channel, true);
  let_go(channel);
  return rc;
}

int eb_channel_parrived(eb_channel *channel, int partition, bool *arrived) {
  *arrived = true;
  eb_partition_state *state = eb_partition(channel, partition);
  /* One thread asks; the others see what it found. */
  const bool asks = take_for_testing(channel);
  int rc = MPI_SUCCESS;
  if (asks && channel->is_deferred) rc = eb_channel_post_deferred(channel);
  if (channel->is_deferred) *arrived = false;
  /* Which segments these are is known no sooner: with the setup they may change. */
  const int first_segment = *arrived ? state->first_segment : 0;
  for (int s = first_segment; rc == MPI_SUCCESS && *arrived && s <= state->last_segment; s++) {
    eb_segment_state *segment = &channel->states[s];
    int flag = atomic_load_explicit(&segment->arrived, memory_order_acquire);
    if (!flag && asks && channel->requests[s] == MPI_REQUEST_NULL) flag = 1; /* MPI_PROC_NULL */
    else if (!flag && asks) rc = eb_wire_test_one(channel, s, &flag);
    if (flag && asks && !atomic_exchange_explicit(&segment->arrived, true, memory_order_release) && eb_record_on)
      eb_record_segment_arrived(channel, s);
    *arrived = flag;
  }
  if (rc == MPI_SUCCESS && *arrived && channel->staging &&
      atomic_load_explicit(&state->done_at, memory_order_acquire) != channel->stamp) {
    if (asks) {
      rc = eb_buffer_unpack(channel, partition);
      atomic_store_explicit(&state->done_at, channel->stamp, memory_order_release);
    } else {
      *arrived = false; /* another thread may be unpacking it: told next time */
    }
  }
  if (asks) let_go(channel);
  else if (!*arrived) atomic_store_explicit(&channel->is_asked, true, memory_order_relaxed); /* whoever has it looks */
  return rc;
}
