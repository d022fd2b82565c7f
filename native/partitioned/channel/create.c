/* Creates channels, agrees with the other side on their tags, and frees them. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/channel/channel.h"
#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/process/world.h"
#include "partitioned/wire/frames.h"

/* Up to this number, each partition of a sender has a separate cache line if threads can be concurrent. With more partitions
 * each thread has many, and threads share cache lines only at the borders. A receiver's are written by one thread at a time. */
#define MAX_SPREAD_PARTITIONS 256

/* Channels are kept when freed: a search of the table in another thread may still be on one. */
static eb_channel *unused;

static eb_channel *take_unused(void) {
  eb_lock();
  eb_channel *channel = unused;
  if (channel) unused = channel->next_unused;
  eb_unlock();
  if (channel) {
    /* All but the entry, which a search may be reading. */
    memset((char *)channel + sizeof channel->entry, 0, sizeof *channel - sizeof channel->entry);
    return channel;
  }
  channel = aligned_alloc(_Alignof(eb_channel), sizeof *channel);
  if (channel) memset(channel, 0, sizeof *channel);
  return channel;
}

/* Frees a channel without references. */
static void destroy(eb_channel *channel) {
  eb_wire_end(&channel->wire);
  eb_tracking_end(&channel->tracking);
  eb_buffer_end(&channel->buffer);
  eb_adaptation_end(&channel->adaptation);
  eb_view_release(channel->view);
  eb_lock();
  channel->next_unused = unused;
  unused = channel;
  eb_unlock();
}

/* The segments of the first start. */
static int cut(eb_channel *channel, int64_t step_bytes) {
  const eb_transfer *const transfer = &channel->transfer;
  eb_segments made;
  if (eb_wire_first_segments(transfer, transfer->total_bytes, step_bytes, &made) != 0) return MPI_ERR_NO_MEM;
  return eb_channel_set_segments(channel, made);
}

/* Uses tags that both sides know without a message. */
static int use_canonical_tags(eb_channel *channel, int64_t order) {
  const int tag = channel->transfer.tag;
  const int base = eb_tags_canonical_base(&eb_domain.tags, channel->view->number, tag, (uint64_t)order);
  /* Neighbouring tags and successive requests begin with different lanes; both sides compute the same. */
  eb_wire_set_tags(&channel->wire, base, 1, (int)((tag + order) % eb_domain.num_lanes));
  return eb_wire_build(&channel->wire);
}

/* Uses the tags of the channel's ids, or frames where they have none. */
static void use_own_tags(eb_channel *channel) {
  const eb_match *const match = &channel->match;
  if (eb_match_is_without_tags(match)) eb_wire_use_frames(&channel->wire, eb_match_first_id(match));
  else eb_wire_set_tags(&channel->wire, eb_match_base(match), eb_match_num_ids(match), eb_match_lane(match));
}

/* Segments and tags of the order-th request of a peer and tag: canonical tags if both sides know them, otherwise new ids, which
 * a setup sends to the receiver. */
static int set_up(eb_channel *channel, int64_t order) {
  const eb_transfer *const transfer = &channel->transfer;
  const eb_mode mode = eb_world.config.mode; /* not the transfer's: an info key is used from a later start on */
  const int64_t step_bytes = transfer->is_send ? eb_mode_step_bytes(mode, transfer->num_partitions, transfer->partition_bytes) : 0;
  /* The receiver, which learns the step from this side, then learns of no request. */
  if (step_bytes && eb_segments_uniform_num(transfer->total_bytes, step_bytes) > EB_SEGMENTS_MAX_NUM)
    return MPI_ERR_UNSUPPORTED_OPERATION;
  int rc = cut(channel, step_bytes);
  if (rc != MPI_SUCCESS || eb_transfer_is_null(transfer)) return rc;
  const int num_segments = eb_wire_segments(&channel->wire)->num;
  /* Depends only on what both sides know. */
  if (mode.kind == EB_AUTO && num_segments <= eb_tags_max_segments(&eb_domain.tags) &&
      eb_tags_is_canonical(&eb_domain.tags, channel->view->number, transfer->tag, (uint64_t)order))
    return use_canonical_tags(channel, order);
  if (!transfer->is_send) return eb_match_post(&channel->match, channel->view->identity);
  rc = eb_match_announce(&channel->match, channel->view, step_bytes, num_segments);
  if (rc != MPI_SUCCESS) return rc;
  eb_wire_set_spread(&channel->wire, transfer->spread);
  eb_wire_begin_copying(&channel->wire);
  use_own_tags(channel);
  return rc;
}

static int set_up_in_order(eb_channel *channel) {
  eb_view *const view = channel->view;
  const eb_transfer *const transfer = &channel->transfer;
  if (eb_transfer_is_null(transfer) || view->number < 0) return set_up(channel, 0);
  eb_order_map *const orders = transfer->is_send ? &view->sends : &view->receives;
  eb_lock();
  const int64_t order = eb_view_next_order(orders, transfer->peer, transfer->tag);
  eb_unlock();
  if (order < 0) return MPI_ERR_NO_MEM;
  const int rc = set_up(channel, order);
  if (rc != MPI_SUCCESS) {
    /* A request that was not created must not count in the matching. */
    eb_lock();
    eb_view_return_order(orders, transfer->peer, transfer->tag);
    eb_unlock();
  }
  return rc;
}

static int fill(eb_channel *channel, const eb_channel_arguments *given) {
  eb_transfer *const transfer = &channel->transfer;
  const bool is_near = given->peer == MPI_PROC_NULL || eb_domain.is_near[given->wire_peer];
  *transfer = (eb_transfer){.is_send = given->is_send,
                            .peer = given->peer,
                            .tag = given->tag,
                            .wire_peer = given->wire_peer,
                            .num_partitions = given->num_partitions,
                            .mode = eb_config_mode(&eb_world.config, given->info),
                            .cost = is_near ? &eb_world.config.intra_node : &eb_world.config.inter_node};
  eb_match_begin(&channel->match, transfer);
  int rc = eb_buffer_begin(&channel->buffer, given->buffer, given->count, given->type, transfer);
  if (rc != MPI_SUCCESS) return rc;
  if (given->is_send) transfer->spread = eb_config_spread(given->info, given->num_partitions, transfer->partition_bytes);
  const bool is_spread = given->is_send && eb_world.multiple && given->num_partitions <= MAX_SPREAD_PARTITIONS;
  const bool is_marked = given->is_send || eb_buffer_is_staged(&channel->buffer);
  if (eb_tracking_begin(&channel->tracking, given->num_partitions, is_spread, is_marked) != 0) return MPI_ERR_NO_MEM;
  eb_wire_begin(&channel->wire, transfer, &channel->buffer);
  rc = eb_adaptation_begin(&channel->adaptation, transfer, &channel->wire);
  return rc == MPI_SUCCESS ? set_up_in_order(channel) : rc;
}

int eb_channel_create(eb_view *view, const eb_channel_arguments *arguments, eb_channel **made) {
  eb_send_queue_progress();
  eb_channel *channel = take_unused();
  if (!channel) return MPI_ERR_NO_MEM;
  channel->view = view;
  eb_view_retain(view);
  /* A request that is never started: what the user holds, unique and freeable on every MPI. Its peer is this rank,
   * because Intel MPI's Testany reports an inactive one of MPI_PROC_NULL as complete. Created before any message to the
   * other side, so that little can fail afterwards. */
  MPI_Request handle;
  int rc = PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, 0, eb_world.self, &handle);
  if (rc == MPI_SUCCESS) {
    channel->entry.handle = handle;
    eb_lock();
    if (eb_requests_add(&channel->entry) != 0) rc = MPI_ERR_NO_MEM;
    eb_unlock();
    if (rc == MPI_SUCCESS && (rc = fill(channel, arguments)) != MPI_SUCCESS) {
      eb_lock();
      eb_requests_remove(&channel->entry);
      eb_unlock();
    }
    if (rc != MPI_SUCCESS) PMPI_Request_free(&handle);
  }
  if (rc != MPI_SUCCESS) {
    destroy(channel);
    return rc;
  }
  eb_statistics_created(&channel->statistics, &channel->transfer);
  *made = channel;
  return MPI_SUCCESS;
}

/* Receives the data that the sender may have sent before it knows that its setup was refused; otherwise the sender would hang
 * in MPI_Finalize. The data is dropped: the receive buffers are empty. The receives are kept until then, because in
 * MPI_Finalize the library must continue to call the MPI while messages are in flight that need its progress. */
static void discard_first_start(const eb_channel *channel, const eb_setup *setup) {
  const eb_transfer *const transfer = &channel->transfer;
  eb_segments segments;
  if (eb_wire_first_segments(transfer, setup->total_bytes, setup->step_bytes, &segments) != 0) eb_abort(EB_NO_MEMORY);
  if (eb_match_is_without_tags(&channel->match)) {
    eb_frames_discard(transfer->wire_peer, eb_match_first_id(&channel->match), segments.num);
    eb_segments_free(&segments);
    return;
  }
  const int base = eb_match_base(&channel->match);
  segments.spread = setup->spread;
  MPI_Request *requests = malloc((size_t)segments.num * sizeof *requests);
  if (!requests) eb_abort(EB_NO_MEMORY);
  for (int s = 0; s < segments.num; s++) {
    const int tag = eb_tags_segment(&eb_domain.tags, base, s);
    const MPI_Comm comm = eb_domain.lanes[eb_domain_lane(&segments, s, setup->lane)];
    if (PMPI_Irecv(NULL, 0, MPI_BYTE, transfer->wire_peer, tag, comm, &requests[s]) != MPI_SUCCESS) requests[s] = MPI_REQUEST_NULL;
  }
  if (eb_send_queue_adopt(EB_SEND_CONTROL, segments.num, requests, NULL) != MPI_SUCCESS) eb_abort(EB_NO_MEMORY);
  eb_segments_free(&segments);
}

static eb_channel *channel_of(eb_match *match) { return (eb_channel *)((char *)match - offsetof(eb_channel, match)); }

/* A receiver's setup has arrived. Under eb_lock. */
static void take_setup(eb_match *match, const eb_setup *setup) {
  eb_channel *const channel = channel_of(match);
  if (eb_match_is_freed(match)) {
    /* Freed before it was matched: it has consumed its place in the order, and that is all. */
    (void)eb_match_release(match);
    destroy(channel);
    return;
  }
  int rc = setup->total_bytes == channel->transfer.total_bytes ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
  if (rc == MPI_SUCCESS && setup->step_bytes) rc = cut(channel, setup->step_bytes);
  if (rc != MPI_SUCCESS) {
    discard_first_start(channel, setup);
    if (eb_match_refuse(match) != MPI_SUCCESS) eb_abort(EB_NO_MEMORY); /* the sender would continue to send */
  } else if (!channel->is_deferred) {
    rc = eb_match_accept(match);
  }
  if (rc != MPI_SUCCESS) eb_wire_set_error(&channel->wire, rc);
  eb_wire_set_spread(&channel->wire, setup->spread);
  /* Another thread may be waiting to post: it reads nothing else before it has read the tags. */
  use_own_tags(channel);
}

/* A sender's setup was refused. Under eb_lock. */
static void take_refusal(eb_match *match) { eb_wire_set_error(&channel_of(match)->wire, MPI_ERR_TRUNCATE); }

void eb_channels_begin(void) { eb_matching_begin(take_setup, take_refusal); }

int eb_channel_free(eb_channel *channel, MPI_Request *handle) {
  eb_buffer_end(&channel->buffer); /* not under our lock, where the channel may end: freeing the datatype may call the program */
  eb_lock();
  eb_requests_remove(&channel->entry);
  const bool is_unused = eb_match_leave(&channel->match);
  eb_unlock();
  int rc = PMPI_Request_free(handle);
  if (!is_unused) {
    eb_matching_progress();
    return rc;
  }
  const int released = eb_match_release(&channel->match);
  if (rc == MPI_SUCCESS) rc = released;
  destroy(channel);
  return rc;
}
