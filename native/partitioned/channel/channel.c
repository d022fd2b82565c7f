/* A start of a channel, from MPI_Start to its status: begun, made ready partition by partition, finished. */
#include "partitioned/channel/channel.h"

#include "partitioned/adaptation/adapt.h"
#include "partitioned/wire/buffer.h"
#include "partitioned/channel/issue.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/statistics/record.h"
#include "partitioned/wire/wire.h"
#include "partitioned/process/world.h"

#define LEAST_AWAITED_BYTES (INT64_C(32) * 1024)
#define COPIED_BYTES_PER_S 5e9

/* Posts a receiver's segments. */
static int post(eb_channel *channel) {
  int rc = atomic_load(&channel->error);
  if (rc == MPI_SUCCESS && !channel->is_built) rc = eb_wire_build(channel);
  if (rc != MPI_SUCCESS || channel->peer == MPI_PROC_NULL) return rc;
  if (channel->segments.num == 1) return PMPI_Start(&channel->requests[0]);
  return PMPI_Startall(channel->segments.num, channel->requests);
}

int eb_channel_post_deferred(eb_channel *channel) {
  if (channel->base < 0) {
    eb_matching_progress();
    if (channel->base < 0) return MPI_SUCCESS;
  }
  int rc = post(channel);
  channel->is_deferred = false;
  if (rc == MPI_SUCCESS) rc = eb_channel_accept(channel);
  return rc;
}

/* Uses what the last plan said. */
static int adopt_plan(eb_channel *channel) {
  if (channel->next_segments.num == 0) return MPI_SUCCESS;
  eb_wire_drop(channel);
  eb_segments_free(&channel->segments);
  channel->segments = channel->next_segments;
  channel->next_segments = (eb_segments){0, NULL};
  return eb_wire_map(channel);
}

static int start_sender(eb_channel *channel) {
  int rc = MPI_SUCCESS;
  if (!channel->is_built && !channel->is_copying) rc = eb_wire_build(channel);
  for (int s = 0; s < channel->segments.num; s++) {
    atomic_store_explicit(&channel->states[s].num_unready, channel->states[s].num_partitions, memory_order_relaxed);
    atomic_store_explicit(&channel->states[s].arrived, false, memory_order_relaxed);
  }
  atomic_store_explicit(&channel->num_unissued, channel->segments.num, memory_order_release);
  atomic_store_explicit(&channel->own_s, 0, memory_order_relaxed);
  atomic_store_explicit(&channel->clock_overhead_s, 0, memory_order_relaxed);
  if (channel->record >= 0) {
    channel->started_s = eb_stopwatch_s();
    channel->clock_ahead_s = eb_now_s() - channel->started_s;
  }
  return rc;
}

static int start_receiver(eb_channel *channel) {
  /* Until the base is there, another thread that takes the setup may be building the states; they are made clear. */
  if (channel->base < 0 && channel->peer != MPI_PROC_NULL) {
    channel->is_deferred = true;
    return eb_channel_post_deferred(channel);
  }
  for (int s = 0; s < channel->segments.num; s++)
    atomic_store_explicit(&channel->states[s].arrived, false, memory_order_relaxed);
  return post(channel);
}

static int fail(eb_channel *channel, int code) {
  atomic_store(&channel->error, code);
  eb_wire_abandon(channel);
  atomic_store_explicit(&channel->is_active, false, memory_order_release);
  return code;
}

static int begin(eb_channel *channel) {
  eb_send_queue_progress();
  channel->num_starts++;
  if (++channel->generation == 0) channel->generation = 1; /* every completed start has stamped all partitions: none is as old as that */
  /* The first data of a channel is sent from copies: the receiver may be anywhere, even blocked in a call that
   * waits for us, before it has taken the setup, and our completion must not depend on it. Once it has taken it, it posts
   * its receives when it starts. */
  if (eb_channel_awaits_answer(channel)) eb_matching_collect();
  if (channel->is_accepted || channel->num_starts == 2) channel->is_copying = false;
  int rc = atomic_load(&channel->error); /* of an earlier start: the two sides no longer agree */
  if (rc == MPI_SUCCESS && channel->is_copying && (rc = eb_wire_reserve_copies(channel)) != MPI_SUCCESS) {
    /* Nothing of this start has left, so it may be tried again. A copy that fails later would leave a receiver that waits. */
    channel->num_starts--;
    return rc;
  }
  if (rc == MPI_SUCCESS) rc = adopt_plan(channel);
  /* A receiver's second start follows its first transfer, so its tags are known. */
  if (rc == MPI_SUCCESS) rc = eb_adapt_exchange(channel);
  if (rc == MPI_SUCCESS) rc = eb_adapt_start(channel);
  if (rc == MPI_SUCCESS) rc = channel->is_send ? start_sender(channel) : start_receiver(channel);
  if (rc != MPI_SUCCESS) return fail(channel, rc); /* a plan's receive may be posted already */
  if (channel->is_send) eb_issue_opened();
  atomic_store_explicit(&channel->is_active, true, memory_order_release);
  return rc;
}

int eb_channel_start(eb_channel *channel) {
  eb_mpi_enter();
  const int rc = begin(channel);
  eb_mpi_leave();
  return rc;
}

/* A receiver that is there answers within microseconds: before a large copy, its answer is waited for as long as the copy
 * would take, and no longer, for it may be anywhere. */
static void await_answer(eb_channel *channel, int64_t num_bytes) {
  if (num_bytes < LEAST_AWAITED_BYTES || !eb_channel_awaits_answer(channel)) return;
  const double end_s = eb_now_s() + (double)num_bytes / COPIED_BYTES_PER_S;
  do {
    eb_matching_progress(); /* the receiver may be waiting for our answer in the same way */
    eb_matching_collect();
  } while (eb_channel_awaits_answer(channel) && atomic_load(&channel->error) == MPI_SUCCESS && eb_now_s() < end_s);
  if (!channel->is_accepted || eb_wire_build(channel) != MPI_SUCCESS) return;
  channel->is_copying = false;
  eb_wire_drop_copies(channel);
}

void eb_channel_issue(eb_channel *channel, int segment) {
  const bool is_recorded = channel->record >= 0;
  const double begin_s = is_recorded ? eb_stopwatch_s() : 0, traced_s = eb_record_on ? eb_now_s() : 0;
  const int64_t begin = channel->segments.first_byte[segment], num_bytes = channel->segments.first_byte[segment + 1] - begin;
  int rc = MPI_SUCCESS;
  if (channel->is_copying) await_answer(channel, num_bytes);
  if (channel->is_copying) {
    rc = eb_send_queue_send_reserved(channel->copies[segment], EB_SEND_DATA, eb_buffer_wire(channel) + begin,
                                 (size_t)num_bytes, channel->wire_peer,
                                 eb_tags_segment(&eb_domain.tags, channel->base, segment), eb_domain.lanes[channel->lane]);
    channel->copies[segment] = NULL;
  } else if (channel->peer != MPI_PROC_NULL) {
    rc = PMPI_Start(&channel->requests[segment]);
  }
  if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  if (is_recorded) {
    const double own_s = atomic_load_explicit(&channel->own_s, memory_order_relaxed) + eb_stopwatch_s() - begin_s;
    atomic_store_explicit(&channel->own_s, own_s, memory_order_relaxed);
  }
  if (eb_record_on) eb_record_segment_sent(channel, segment, traced_s);
  /* From then on a thread that waits may start the request again, or free it. */
  if (atomic_fetch_sub_explicit(&channel->num_unissued, 1, memory_order_release) == 1) eb_issue_closed();
}

/* Kept out of the way of the ordinary Pready. */
__attribute__((noinline))
static void note_ready(eb_channel *channel, int partition) {
  if (channel->record >= 0) {
    const double now_s = eb_stopwatch_s();
    const double clock_overhead_s = atomic_load_explicit(&channel->clock_overhead_s, memory_order_relaxed);
    const double own_s = atomic_load_explicit(&channel->own_s, memory_order_relaxed) + clock_overhead_s;
    /* Of the last one, whichever thread that is. */
    const double spent_s = now_s - channel->started_s;
    atomic_store_explicit(&channel->done_s[channel->record], channel->clock_ahead_s + now_s, memory_order_relaxed);
    atomic_store_explicit(&channel->spent_s[channel->record][0], spent_s, memory_order_relaxed);
    atomic_store_explicit(&channel->spent_s[channel->record][1], own_s, memory_order_relaxed);
    if (channel->ready_s) channel->ready_s[(size_t)partition * EB_NUM_RECORDS + (size_t)channel->record] = (float)(spent_s - own_s);
    /* Looking at the clock is no work of the program's either. Two threads at once may count one look: a trifle. */
    atomic_store_explicit(&channel->clock_overhead_s, clock_overhead_s + eb_clock.look_s, memory_order_relaxed);
  }
  if (eb_record_on) eb_record_pready(channel, partition);
}

int eb_channel_pready(eb_channel *channel, int partition) {
  eb_partition_state *state = eb_partition(channel, partition);
  const uint16_t generation = channel->generation;
  /* Not an atomic exchange: two threads that make one partition ready at once are two errors already. */
  if (__builtin_expect(atomic_load_explicit(&state->done_at, memory_order_relaxed) == generation, 0)) return MPI_ERR_ARG;
  atomic_store_explicit(&state->done_at, generation, memory_order_relaxed);
  if (__builtin_expect(channel->record >= 0 || eb_record_on, 0)) note_ready(channel, partition);
  if (__builtin_expect(channel->staging != NULL, 0)) {
    /* Told when the request completes: the segment leaves all the same, for the receiver waits for it. */
    eb_mpi_enter();
    const int rc = eb_buffer_pack(channel, partition);
    eb_mpi_leave();
    if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  }
  /* Read before the last segment is given up: from then on a thread that waits may start the request anew with other
   * segments, or free it. */
  const eb_segment_range segments = eb_partition_segments(channel, partition);
  for (int s = segments.first; s <= segments.last; s++) {
    /* At every thread level: see issue.h. 5 ns where no other thread counts. */
    if (atomic_fetch_sub_explicit(&channel->states[s].num_unready, 1, memory_order_acq_rel) == 1) eb_issue(channel, s);
  }
  return MPI_SUCCESS;
}

void eb_status_empty(MPI_Status *status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  PMPI_Status_set_elements_x(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
}

void eb_channel_fill_status(const eb_channel *channel, MPI_Status *status) {
  if (status == MPI_STATUS_IGNORE) return;
  eb_status_empty(status);
  if (channel->is_send) return;
  status->MPI_SOURCE = channel->peer;
  if (channel->peer == MPI_PROC_NULL) return;
  status->MPI_TAG = channel->tag;
  PMPI_Status_set_elements_x(status, MPI_BYTE, channel->total_bytes);
}

int eb_channel_finish(eb_channel *channel, MPI_Status *status) {
  int rc = MPI_SUCCESS;
  if (!channel->is_send) {
    if (channel->record >= 0) channel->done_s[channel->record] = eb_now_s();
    rc = eb_channel_deliver(channel);
    eb_mpi_enter();
    if (rc == MPI_SUCCESS) rc = eb_adapt_finish(channel);
    eb_mpi_leave();
  }
  /* The data is here, but a plan that was not taken would have the next start receive by other segments than are sent. */
  if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  if (eb_record_on) eb_record_finished(channel);
  eb_channel_fill_status(channel, status);
  /* Last: a thread that asks for arrivals meanwhile takes an inactive request for one whose data is in place. */
  atomic_store_explicit(&channel->is_active, false, memory_order_release);
  return rc;
}

int eb_channel_fail(eb_channel *channel, int code) {
  eb_mpi_enter();
  fail(channel, code);
  eb_mpi_leave();
  return code;
}
