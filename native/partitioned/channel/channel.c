/* A start of a channel, from MPI_Start to its status: begun, made ready partition by partition, finished. */
#include "partitioned/channel/channel.h"

#include "partitioned/adaptation/unread.h"
#include "partitioned/channel/issue.h"
#include "partitioned/channel/send.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/statistics/trace.h"
#include "partitioned/wire/node_direct.h"

int eb_channel_set_segments(eb_channel *channel, eb_segments segments) {
  const int rc = eb_wire_set_segments(&channel->wire, segments);
  if (rc != MPI_SUCCESS) return rc;
  const eb_segments *const made = eb_wire_segments(&channel->wire);
  return eb_tracking_map(&channel->tracking, made, channel->transfer.partition_bytes) == 0 ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Posts a receiver's segments. */
static int post(eb_channel *channel) { return eb_wire_post(&channel->wire, channel->num_starts); }

int eb_channel_post_deferred(eb_channel *channel) {
  if (!eb_wire_has_tags(&channel->wire)) {
    eb_matching_progress();
    if (!eb_wire_has_tags(&channel->wire)) return MPI_SUCCESS;
  }
  int rc = post(channel);
  channel->is_deferred = false;
  if (rc == MPI_SUCCESS) rc = eb_match_accept(&channel->match);
  return rc;
}

static int start_sender(eb_channel *channel) {
  const int rc = eb_wire_open(&channel->wire, channel->num_starts);
  eb_tracking_reset(&channel->tracking, eb_thread_owner());
  eb_adaptation_set_started(&channel->adaptation);
  return rc;
}

static int start_receiver(eb_channel *channel) {
  /* Until the tags are there, another thread that takes the setup may be building the states; they are made clear. */
  if (!eb_wire_has_tags(&channel->wire) && !eb_transfer_is_null(&channel->transfer)) {
    channel->is_deferred = true;
    return eb_channel_post_deferred(channel);
  }
  eb_tracking_reset(&channel->tracking, NULL);
  return post(channel);
}

static void set_inactive(eb_channel *channel) {
  atomic_store_explicit(&channel->entry.num_markable, 0, memory_order_relaxed);
  atomic_store_explicit(&channel->is_active, false, memory_order_release);
}

/* Is nothing to be done for a partition of this start but to mark and count it? */
static bool only_marks(const eb_channel *channel) {
  return channel->transfer.is_send && !eb_tracking_is_searched(&channel->tracking) && !eb_statistics_on &&
         !eb_adaptation_notes_ready(&channel->adaptation) && !eb_buffer_is_staged(&channel->buffer);
}

static void set_active(eb_channel *channel) {
  const int num_markable = only_marks(channel) ? channel->transfer.num_partitions : 0;
  atomic_store_explicit(&channel->entry.num_markable, (unsigned)num_markable, memory_order_relaxed);
  atomic_store_explicit(&channel->is_active, true, memory_order_release);
}

int eb_channel_abandon(eb_channel *channel, int code) {
  if (channel->transfer.is_send) eb_adaptation_set_finished(&channel->adaptation);
  eb_wire_set_error(&channel->wire, code);
  if (eb_adaptation_abandon(&channel->adaptation)) eb_match_keep_ids(&channel->match);
  eb_wire_abandon(&channel->wire);
  set_inactive(channel);
  return code;
}

/* Uses the segments that the last segmentation message named for this start. */
static int adopt_segments(eb_channel *channel) {
  eb_segments next;
  const int rc = eb_adaptation_take_segments(&channel->adaptation, channel->num_starts, &next);
  return rc == MPI_SUCCESS && next.num > 0 ? eb_channel_set_segments(channel, next) : rc;
}

static int begin(eb_channel *channel) {
  eb_wire *const wire = &channel->wire;
  eb_send_queue_progress();
  (void)eb_unread_progress();
  (void)eb_node_direct_progress();
  channel->num_starts++;
  eb_tracking_advance(&channel->tracking);
  /* Once the receiver has processed the setup, it posts its receives in each start. */
  if (eb_match_awaits_answer(&channel->match)) eb_matching_collect();
  if (eb_wire_is_copying(wire) && !eb_wire_is_framed(wire) && (eb_match_is_accepted(&channel->match) || channel->num_starts == 2))
    eb_wire_end_copying(wire);
  int rc = eb_wire_error(wire); /* of an earlier start: the two sides no longer agree */
  if (rc == MPI_SUCCESS && eb_wire_is_copying(wire) && (rc = eb_wire_reserve_copies(wire)) != MPI_SUCCESS) {
    /* No data of this start has left, so it may be tried again. A copy that fails later would leave a receiver that waits. */
    channel->num_starts--;
    return rc;
  }
  if (rc == MPI_SUCCESS) rc = adopt_segments(channel);
  /* A receiver's second start follows its first transfer, so its tags are known. */
  if (rc == MPI_SUCCESS) rc = eb_adaptation_start(&channel->adaptation, channel->num_starts);
  if (eb_statistics_on) eb_statistics_started(&channel->statistics, channel->num_starts);
  if (rc == MPI_SUCCESS) rc = channel->transfer.is_send ? start_sender(channel) : start_receiver(channel);
  if (rc != MPI_SUCCESS) return eb_channel_abandon(channel, rc); /* the receive of a segmentation message may be posted already */
  if (channel->transfer.is_send) eb_issue_opened(channel);
  set_active(channel);
  return rc;
}

int eb_channel_start(eb_channel *channel) {
  eb_mpi_enter();
  const int rc = begin(channel);
  eb_mpi_leave();
  return rc;
}

/* Kept out of the way of the ordinary Pready. */
__attribute__((noinline)) static void note_ready(eb_channel *channel, int partition) {
  if (eb_adaptation_notes_ready(&channel->adaptation)) eb_adaptation_note_ready(&channel->adaptation, partition);
  if (eb_statistics_on) eb_statistics_pready(&channel->statistics, partition);
}

/* All partitions of a segment are ready. */
static void issue(eb_channel *channel, int segment) {
  if (__builtin_expect(eb_adaptation_is_observed(&channel->adaptation), 0)) eb_adaptation_note_complete(&channel->adaptation);
  if (eb_wire_sends_alone(&channel->wire)) eb_issue_alone(channel, segment);
  else eb_issue(channel, segment);
}

/* An error is reported when the request completes: the segment leaves all the same, because the receiver waits for it. */
static void pack(eb_channel *channel, int partition) {
  eb_mpi_enter();
  const int rc = eb_buffer_pack(&channel->buffer, partition);
  eb_mpi_leave();
  if (rc != MPI_SUCCESS) eb_wire_set_error(&channel->wire, rc);
}

/* Counts marked partitions. Until their last segment is counted, the segments stay; from then on a thread that waits may start the
 * request again with others, or free it. */
static void count_several(eb_channel *channel, int low, int high) {
  eb_tracking *const tracking = &channel->tracking;
  const int last = eb_tracking_range(tracking, high).last;
  for (int s = eb_tracking_range(tracking, low).first; s <= last; s++)
    if (eb_tracking_count(tracking, s, eb_tracking_num_within(tracking, s, low, high))) issue(channel, s);
}

/* The same as eb_channel_pready for each, in few steps if nothing needs to be done for each. */
__attribute__((noinline)) static int pready_several(eb_channel *channel, int low, int high) {
  const bool is_staged = eb_buffer_is_staged(&channel->buffer), is_ready_noted = eb_adaptation_notes_ready(&channel->adaptation);
  const bool is_noted = is_ready_noted || eb_statistics_on, is_each = is_staged || is_ready_noted || eb_trace_is_on();
  for (int first = low, end; first <= high; first = end) {
    /* The last one by itself if it is noted: what was sent of those before it was early. */
    const int last = is_each ? first : is_noted && first < high ? high - 1 : high;
    end = eb_tracking_mark_several(&channel->tracking, first, last);
    if (end > first) {
      if (is_noted) note_ready(channel, first);
      if (is_staged) pack(channel, first);
      count_several(channel, first, end - 1);
    }
    if (end <= last) return MPI_ERR_ARG;
  }
  return MPI_SUCCESS;
}

/* Counts a marked partition in its segments, whose states must have been read before: from the last count on a thread that waits
 * may start the request again with other segments, or free it. */
__attribute__((noinline)) int eb_channel_count(eb_channel *channel, eb_segment_range range) {
  for (int s = range.first; s <= range.last; s++)
    if (eb_tracking_count(&channel->tracking, s, 1)) issue(channel, s); /* at every thread level: see issue.h */
  return MPI_SUCCESS;
}

__attribute__((noinline)) int eb_channel_complete(eb_channel *channel, int segment) {
  if (eb_tracking_claim(&channel->tracking, segment)) issue(channel, segment);
  return MPI_SUCCESS;
}

int eb_channel_pready(eb_channel *channel, int partition) {
  eb_tracking *const tracking = &channel->tracking;
  if (eb_tracking_is_searched(tracking)) return pready_several(channel, partition, partition);
  const eb_partition_state *const state = eb_channel_mark(channel, partition);
  if (!state) return MPI_ERR_ARG;
  if (__builtin_expect(eb_adaptation_notes_ready(&channel->adaptation) || eb_statistics_on, 0)) note_ready(channel, partition);
  if (__builtin_expect(eb_buffer_is_staged(&channel->buffer), 0)) pack(channel, partition);
  return eb_channel_count_marked(channel, state);
}

int eb_channel_pready_range(eb_channel *channel, int low, int high) {
  if (eb_tracking_is_searched(&channel->tracking)) return pready_several(channel, low, high);
  for (int p = low; p <= high; p++) {
    const int rc = eb_channel_pready(channel, p);
    if (rc != MPI_SUCCESS) return rc;
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
  if (channel->transfer.is_send) return;
  status->MPI_SOURCE = channel->transfer.peer;
  if (channel->transfer.peer == MPI_PROC_NULL) return;
  status->MPI_TAG = channel->transfer.tag;
  PMPI_Status_set_elements_x(status, MPI_BYTE, channel->transfer.total_bytes);
}

int eb_channel_finish(eb_channel *channel, MPI_Status *status) {
  int rc = MPI_SUCCESS;
  if (channel->transfer.is_send) {
    if (eb_adaptation_is_observed(&channel->adaptation)) eb_adaptation_set_finished(&channel->adaptation);
  } else {
    if (eb_adaptation_is_observed(&channel->adaptation)) eb_adaptation_note_arrived(&channel->adaptation);
    rc = eb_channel_deliver(channel);
    if (eb_adaptation_is_observed(&channel->adaptation)) { /* also after an error: a sender may wait in memory that is named here */
      eb_mpi_enter();
      const int code = eb_adaptation_finish(&channel->adaptation);
      eb_mpi_leave();
      if (rc == MPI_SUCCESS) rc = code;
    }
  }
  /* The data is here, but without the segmentation message the next start would receive by other segments than are sent. */
  if (rc != MPI_SUCCESS) {
    eb_wire_set_error(&channel->wire, rc);
    eb_wire_refuse(&channel->wire);
  }
  const eb_segments *const segments = eb_wire_segments(&channel->wire);
  if (eb_statistics_on) eb_statistics_finished(&channel->statistics, segments->num, segments->path);
  eb_channel_fill_status(channel, status);
  /* Last: a thread that asks for arrivals meanwhile takes an inactive request for one whose data is in place. */
  set_inactive(channel);
  return rc;
}
