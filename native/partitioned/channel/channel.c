/* A start of a channel, from MPI_Start to its status: begun, made ready partition by partition, finished. */
#include "partitioned/channel/channel.h"

#include "partitioned/channel/issue.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/statistics/trace.h"

int eb_channel_set_segments(eb_channel *channel, eb_segments segments) {
  const int rc = eb_wire_set_segments(&channel->wire, segments);
  if (rc != MPI_SUCCESS) return rc;
  const eb_segments *const made = eb_wire_segments(&channel->wire);
  return eb_tracking_map(&channel->tracking, made, channel->transfer.partition_bytes) == 0 ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Posts a receiver's segments. */
static int post(eb_channel *channel) { return eb_wire_post(&channel->wire, channel->num_starts == 1); }

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
  const int rc = eb_wire_open(&channel->wire);
  eb_tracking_reset(&channel->tracking);
  eb_adaptation_set_started(&channel->adaptation);
  return rc;
}

static int start_receiver(eb_channel *channel) {
  /* Until the tags are there, another thread that takes the setup may be building the states; they are made clear. */
  if (!eb_wire_has_tags(&channel->wire) && !eb_transfer_is_null(&channel->transfer)) {
    channel->is_deferred = true;
    return eb_channel_post_deferred(channel);
  }
  eb_tracking_reset(&channel->tracking);
  return post(channel);
}

int eb_channel_abandon(eb_channel *channel, int code) {
  eb_wire_set_error(&channel->wire, code);
  eb_wire_abandon(&channel->wire);
  atomic_store_explicit(&channel->is_active, false, memory_order_release);
  return code;
}

/* Uses the segments that the last segmentation message named. */
static int adopt_segments(eb_channel *channel) {
  eb_segments next;
  return eb_adaptation_take_segments(&channel->adaptation, &next) ? eb_channel_set_segments(channel, next) : MPI_SUCCESS;
}

static int begin(eb_channel *channel) {
  eb_wire *const wire = &channel->wire;
  eb_send_queue_progress();
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
  if (channel->transfer.is_send) eb_issue_opened();
  atomic_store_explicit(&channel->is_active, true, memory_order_release);
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
  if (eb_adaptation_is_observed(&channel->adaptation)) eb_adaptation_note_ready(&channel->adaptation, partition);
  if (eb_statistics_on) eb_statistics_pready(&channel->statistics, partition);
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
    if (eb_tracking_count_several(tracking, s, eb_tracking_num_within(tracking, s, low, high))) eb_issue(channel, s);
}

/* The same as eb_channel_pready for each, in few steps if nothing needs to be done for each. */
__attribute__((noinline)) static int pready_several(eb_channel *channel, int low, int high) {
  const bool is_staged = eb_buffer_is_staged(&channel->buffer), is_observed = eb_adaptation_is_observed(&channel->adaptation);
  const bool is_noted = is_observed || eb_statistics_on, is_each = is_staged || is_observed || eb_trace_is_on();
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

int eb_channel_pready(eb_channel *channel, int partition) {
  eb_tracking *const tracking = &channel->tracking;
  if (eb_tracking_is_searched(tracking)) return pready_several(channel, partition, partition);
  if (!eb_tracking_mark(tracking, partition)) return MPI_ERR_ARG;
  if (__builtin_expect(eb_adaptation_is_observed(&channel->adaptation) || eb_statistics_on, 0)) note_ready(channel, partition);
  if (__builtin_expect(eb_buffer_is_staged(&channel->buffer), 0)) pack(channel, partition);
  /* Read before the last segment is counted: from then on a thread that waits may start the request again with other segments,
   * or free it. */
  const eb_segment_range range = eb_tracking_stored_range(tracking, partition);
  for (int s = range.first; s <= range.last; s++)
    if (eb_tracking_count(tracking, s)) eb_issue(channel, s); /* at every thread level: see issue.h */
  return MPI_SUCCESS;
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
    if (rc == MPI_SUCCESS && eb_adaptation_is_observed(&channel->adaptation)) {
      eb_mpi_enter();
      rc = eb_adaptation_finish(&channel->adaptation);
      eb_mpi_leave();
    }
  }
  /* The data is here, but without the segmentation message the next start would receive by other segments than are sent. */
  if (rc != MPI_SUCCESS) eb_wire_set_error(&channel->wire, rc);
  if (eb_statistics_on) eb_statistics_finished(&channel->statistics, eb_wire_segments(&channel->wire)->num);
  eb_channel_fill_status(channel, status);
  /* Last: a thread that asks for arrivals meanwhile takes an inactive request for one whose data is in place. */
  atomic_store_explicit(&channel->is_active, false, memory_order_release);
  return rc;
}
