/* The life of a channel: created, started, made ready partition by partition, tested or waited for, finished, freed. */
#ifndef EB_CHANNEL_H
#define EB_CHANNEL_H

#include <mpi.h>
#include <stdbool.h>

#include "partitioned/channel/parts.h"

/* The channel of a handle, NULL for a handle of the MPI. */
static inline eb_channel *eb_channel_find(MPI_Request handle) {
  return (eb_channel *)eb_requests_find(handle); /* a channel begins with its entry */
}

/* The channel that this thread has used last, if it has this handle, else NULL; for MPI_REQUEST_NULL perhaps a freed one. */
static inline eb_channel *eb_channel_recent(MPI_Request handle) { return (eb_channel *)eb_requests_recent(handle); }

/* All of these return MPI codes. None calls an error handler: the callers do, because they know the MPI call. */

typedef struct {
  bool is_send;
  void *buffer;
  int num_partitions;
  MPI_Count count;
  MPI_Datatype type;
  int peer, tag;
  int wire_peer; /* of a peer that is not MPI_PROC_NULL: its rank in the domain */
  MPI_Info info;
} eb_channel_arguments;

/* The arguments must be checked. On success *made has a handle in the table. */
int eb_channel_create(eb_view *view, const eb_channel_arguments *arguments, eb_channel **made);

int eb_channel_start(eb_channel *channel);

/* Marks a partition; the thread that completes a segment issues it. The partition must be in range and the
 * channel an active sender; MPI_ERR_ARG when the partition was marked before. Any number of threads. */
int eb_channel_pready(eb_channel *channel, int partition);
/* The same for the partitions low .. high, up to the first that was marked before. */
int eb_channel_pready_range(eb_channel *channel, int low, int high);

/* May the partition only be marked and counted? Then the channel is an active sender, and the partition in range. */
static inline bool eb_channel_only_marks(const eb_channel *channel, int partition) {
  return (unsigned)partition < atomic_load_explicit(&channel->entry.num_markable, memory_order_relaxed);
}

/* eb_channel_pready in two steps, if eb_channel_only_marks: marks the partition, unless it was marked before; and counts it, which
 * cannot fail. The state is that of the partition. */
static inline eb_partition_state *eb_channel_mark(eb_channel *channel, int partition) {
  eb_partition_state *const state = eb_tracking_partition(&channel->tracking, partition);
  return __builtin_expect(eb_tracking_mark(&channel->tracking, state), 1) ? state : NULL;
}
int eb_channel_count(eb_channel *channel, eb_segment_range range);
int eb_channel_complete(eb_channel *channel, int segment);
static inline int eb_channel_count_marked(eb_channel *channel, const eb_partition_state *state) {
  const eb_segment_range range = eb_tracking_range_of(state);
  if (__builtin_expect(range.first < range.last || !eb_tracking_is_owned(&channel->tracking), 0))
    return eb_channel_count(channel, range);
  if (__builtin_expect(!eb_tracking_count_owned(&channel->tracking, range.first), 1)) return MPI_SUCCESS;
  return eb_channel_complete(channel, range.first);
}

/* Has all of it arrived (or left)? Makes progress. When *done, nothing of the transfer is left but eb_channel_finish. */
int eb_channel_test(eb_channel *channel, bool *done);
/* Blocks until then. */
int eb_channel_wait(eb_channel *channel);
/* Unpacks, fills the status (unless it is MPI_STATUS_IGNORE) and makes the channel inactive. */
int eb_channel_finish(eb_channel *channel, MPI_Status *status);
/* Ends a start whose test or wait has failed with the code, which is returned. The two sides no longer agree on the messages
 * in flight, so no later start succeeds. */
int eb_channel_fail(eb_channel *channel, int code);
/* Unpacks a receiver's data if a test has found all of it: for calls that leave the request active. */
int eb_channel_deliver(eb_channel *channel);
/* Ends an active start without a wait, as MPI_Request_free may: of a receiver whose data has all arrived, of a sender whose
 * partitions are all ready. *ended false: data would be lost, and nothing was changed. *is_in_flight: the sender's data has
 * not left yet; the library continues to send it. Must not be called while another thread tests or waits. */
int eb_channel_end(eb_channel *channel, bool *ended, bool *is_in_flight);
/* Fills only the status, for MPI_Request_get_status. */
void eb_channel_fill_status(const eb_channel *channel, MPI_Status *status);
/* The empty status of an inactive or null request (MPI 4.1 section 3.7.3). */
void eb_status_empty(MPI_Status *status);

/* Has a receiver's partition arrived? Unpacks it if so. */
int eb_channel_parrived(eb_channel *channel, int partition, bool *arrived);

/* Frees an inactive channel; *handle becomes MPI_REQUEST_NULL. */
int eb_channel_free(eb_channel *channel, MPI_Request *handle);

/* For the other files of channels. */

/* Before the first channel, after the domain has begun. */
void eb_channels_begin(void);

/* Replaces the segments, which the channel then owns. */
int eb_channel_set_segments(eb_channel *channel, eb_segments segments);

/* Ends the messages of a start, which has failed with the code, and makes the channel inactive. Only for the thread that holds
 * `testing`, or that starts the request. Returns the code. */
int eb_channel_abandon(eb_channel *channel, int code);

/* Posts a receiver's segments that were started before their setup arrived, if it has arrived now; otherwise the channel stays
 * deferred. Only for the thread that holds `testing`. */
int eb_channel_post_deferred(eb_channel *channel);

#endif
