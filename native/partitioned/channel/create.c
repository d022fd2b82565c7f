/* Creates channels, matches them with the other side's, and frees them. */
#include <stdlib.h>
#include <string.h>

#include "partitioned/adaptation/adapt.h"
#include "partitioned/wire/buffer.h"
#include "partitioned/channel/channel.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/statistics/record.h"
#include "partitioned/wire/wire.h"
#include "partitioned/process/world.h"

/* Up to this number, each partition of a sender has a separate cache line if threads can be concurrent. With more partitions
 * each thread has many, and threads share cache lines only at the borders. A receiver's are written by one thread at a time. */
#define MAX_SPREAD_PARTITIONS 256

/* Channels are kept when freed: a search of the table in another thread may still be on one. */
static eb_channel *unused;

static eb_channel *take_unused(void) {
  eb_lock();
  eb_channel *channel = unused;
  if (channel) unused = channel->next_posted;
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

static void put_unused(eb_channel *channel) {
  eb_lock();
  channel->next_posted = unused;
  unused = channel;
  eb_unlock();
}

/* Frees a channel without references. */
static void destroy(eb_channel *channel) {
  eb_wire_drop(channel);
  eb_segments_free(&channel->segments);
  eb_segments_free(&channel->next_segments);
  eb_buffer_end(channel);
  eb_adapt_end(channel);
  free(channel->partitions);
  eb_view_release(channel->view);
  put_unused(channel);
}

/* Neighbouring tags and successive requests go to different lanes; both sides compute the same. */
static int canonical_lane(const eb_channel *channel, int64_t order) {
  return (int)((channel->tag + order) % eb_domain.num_lanes);
}

/* The tags of a sender: canonical if both sides know them, otherwise new ids that a setup sends to the receiver. */
static int set_up_sender(eb_channel *channel, bool is_canonical, int64_t order) {
  const int64_t step_bytes =
      eb_mode_step_bytes(eb_world.config.mode, channel->num_partitions, channel->partition_bytes);
  int rc = eb_wire_cut(channel, step_bytes);
  if (rc != MPI_SUCCESS || channel->peer == MPI_PROC_NULL) return rc;
  if (is_canonical && channel->segments.num <= eb_tags_max_segments(&eb_domain.tags)) {
    channel->base = eb_tags_canonical_base(&eb_domain.tags, channel->view->number, channel->tag, (uint64_t)order);
    channel->lane = canonical_lane(channel, order);
    channel->num_ids = 1;
    return eb_wire_build(channel);
  }
  eb_matching_collect();
  channel->num_ids = eb_tags_ids_needed(&eb_domain.tags, channel->segments.num);
  eb_lock();
  channel->first_id = eb_ids_take(&eb_domain.ids, channel->num_ids, channel);
  eb_unlock();
  if (channel->first_id < 0) {
    channel->first_id = 0;
    return MPI_ERR_OTHER;
  }
  channel->base = eb_tags_channel_base(&eb_domain.tags, channel->first_id);
  channel->lane = (int)(channel->first_id % eb_domain.num_lanes);
  channel->is_copying = true;
  const eb_setup setup = {.identity = channel->view->identity,
                          .total_bytes = channel->total_bytes,
                          .step_bytes = step_bytes,
                          .first_id = channel->first_id,
                          .num_ids = channel->num_ids,
                          .source = channel->view->rank,
                          .tag = channel->tag,
                          .lane = channel->lane};
  rc = eb_matching_announce(channel, &setup);
  if (rc == MPI_SUCCESS) return rc;
  eb_lock();
  eb_ids_disown(&eb_domain.ids, channel->first_id);
  eb_ids_release(&eb_domain.ids, channel->first_id); /* for the receiver, which does not know of it */
  eb_unlock();
  channel->first_id = 0;
  return rc;
}

static int set_up_receiver(eb_channel *channel, bool is_canonical, int64_t order) {
  channel->num_ids = 1;
  int rc = eb_wire_cut(channel, 0);
  if (rc != MPI_SUCCESS || channel->peer == MPI_PROC_NULL) return rc;
  if (is_canonical && channel->segments.num <= eb_tags_max_segments(&eb_domain.tags)) {
    channel->base = eb_tags_canonical_base(&eb_domain.tags, channel->view->number, channel->tag, (uint64_t)order);
    channel->lane = canonical_lane(channel, order);
    return eb_wire_build(channel);
  }
  return eb_matching_post(channel);
}

static const eb_cost *cost_to(const eb_channel *channel) {
  const bool is_near = channel->peer == MPI_PROC_NULL || eb_domain.is_near[channel->wire_peer];
  return is_near ? &eb_world.config.intra_node : &eb_world.config.inter_node;
}

static int fill(eb_channel *channel, const eb_channel_arguments *arguments) {
  eb_view *view = channel->view;
  channel->is_send = arguments->is_send;
  channel->peer = arguments->peer;
  channel->wire_peer = arguments->wire_peer;
  channel->tag = arguments->tag;
  channel->base = -1;
  channel->mode = eb_config_mode(&eb_world.config, arguments->info);
  channel->cost = cost_to(channel);
  int rc = eb_buffer_begin(channel, arguments->buffer, arguments->num_partitions, arguments->count, arguments->type);
  if (rc != MPI_SUCCESS) return rc;
  const bool spread = channel->is_send && eb_world.multiple && channel->num_partitions <= MAX_SPREAD_PARTITIONS;
  channel->partition_stride = spread ? 64 : sizeof(eb_partition_state);
  channel->partitions = calloc((size_t)channel->num_partitions, channel->partition_stride);
  if (!channel->partitions) return MPI_ERR_NO_MEM;
  rc = eb_adapt_begin(channel);
  if (rc != MPI_SUCCESS) return rc;
  int64_t order = 0;
  eb_order_map *const orders = channel->is_send ? &view->sends : &view->receives;
  const bool is_ordered = channel->peer != MPI_PROC_NULL && view->number >= 0;
  if (is_ordered) {
    eb_lock();
    order = eb_view_next_order(orders, channel->peer, channel->tag);
    eb_unlock();
    if (order < 0) return MPI_ERR_NO_MEM;
  }
  /* Depends only on what both sides know: the configuration is global, an info key is known only to the sender. */
  const bool is_canonical = eb_world.config.mode.kind == EB_AUTO &&
                            eb_tags_is_canonical(&eb_domain.tags, view->number, channel->tag, (uint64_t)order);
  rc = channel->is_send ? set_up_sender(channel, is_canonical, order) : set_up_receiver(channel, is_canonical, order);
  if (rc != MPI_SUCCESS && is_ordered) {
    /* A request that was not created must not count in the matching. */
    eb_lock();
    eb_view_return_order(orders, channel->peer, channel->tag);
    eb_unlock();
  }
  return rc;
}

int eb_channel_create(eb_view *view, const eb_channel_arguments *arguments, eb_channel **made) {
  eb_send_queue_progress();
  eb_channel *channel = take_unused();
  if (!channel) return MPI_ERR_NO_MEM;
  channel->type = MPI_DATATYPE_NULL;
  channel->record = -1;
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
  eb_record_made(channel);
  *made = channel;
  return MPI_SUCCESS;
}

/* Receives the data that the sender may have sent before it knows that its setup was refused; otherwise the sender would hang
 * in MPI_Finalize. The data is dropped: the receive buffers are empty. The receives are kept until then, because in
 * MPI_Finalize the library must continue to call the MPI while messages are in flight that need its progress. */
static void discard_first_start(const eb_channel *channel, const eb_setup *setup) {
  eb_segments segments;
  const int base = eb_tags_channel_base(&eb_domain.tags, setup->first_id);
  if ((setup->step_bytes ? eb_segments_uniform(setup->total_bytes, setup->step_bytes, &segments)
                         : eb_wire_canonical(channel, setup->total_bytes, &segments)) != 0)
    eb_abort(EB_NO_MEMORY);
  MPI_Request *requests = malloc((size_t)segments.num * sizeof *requests);
  if (!requests) eb_abort(EB_NO_MEMORY);
  for (int s = 0; s < segments.num; s++)
    if (PMPI_Irecv(NULL, 0, MPI_BYTE, channel->wire_peer, eb_tags_segment(&eb_domain.tags, base, s), eb_domain.lanes[setup->lane], &requests[s]) != MPI_SUCCESS)
      requests[s] = MPI_REQUEST_NULL;
  if (eb_send_queue_adopt(EB_SEND_CONTROL, segments.num, requests, NULL) != MPI_SUCCESS) eb_abort(EB_NO_MEMORY);
  eb_segments_free(&segments);
}

int eb_channel_accept(eb_channel *channel) {
  if (channel->first_id == 0 || atomic_exchange(&channel->is_accepted, true)) return MPI_SUCCESS;
  return eb_matching_accept(channel->wire_peer, channel->first_id);
}

void eb_channel_take_answer(eb_channel *channel, int code) {
  if (code == MPI_SUCCESS) atomic_store(&channel->is_accepted, true);
  else atomic_store(&channel->error, code);
}

void eb_channel_take_setup(eb_channel *channel, const eb_setup *setup) {
  channel->first_id = setup->first_id;
  channel->num_ids = setup->num_ids;
  channel->lane = setup->lane;
  if (channel->is_freed) {
    /* Freed before it was matched: it has consumed its place in the order, and that is all. */
    (void)eb_matching_release(channel->wire_peer, channel->first_id, channel->num_ids);
    destroy(channel);
    return;
  }
  int rc = setup->total_bytes == channel->total_bytes ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
  if (rc == MPI_SUCCESS && setup->step_bytes) rc = eb_wire_cut(channel, setup->step_bytes);
  if (rc != MPI_SUCCESS) {
    channel->is_refused = true;
    discard_first_start(channel, setup);
    if (eb_matching_refuse(channel->wire_peer, channel->first_id) != MPI_SUCCESS) eb_abort(EB_NO_MEMORY); /* it would send on */
  } else if (!channel->is_deferred) {
    rc = eb_channel_accept(channel);
  }
  if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  /* Another thread may be waiting to post: it looks at nothing else before it has seen this. */
  atomic_store_explicit(&channel->base, eb_tags_channel_base(&eb_domain.tags, setup->first_id), memory_order_release);
}

int eb_channel_free(eb_channel *channel, MPI_Request *handle) {
  bool is_unmatched = false;
  eb_buffer_end(channel); /* not under our lock, where the channel may end: freeing the datatype may call the program */
  eb_lock();
  eb_requests_remove(&channel->entry);
  if (channel->is_send) {
    if (channel->first_id) eb_ids_disown(&eb_domain.ids, channel->first_id);
  } else if (channel->base < 0 && channel->peer != MPI_PROC_NULL) {
    eb_matching_disown();
    is_unmatched = channel->is_freed = true; /* stays posted until its setup arrives */
  }
  eb_unlock();
  int rc = PMPI_Request_free(handle);
  if (is_unmatched) {
    eb_matching_progress();
    return rc;
  }
  /* The ids of a refused transfer are not used again: its sender may have heard in time to send nothing, and what was posted to
   * drop its data would take another transfer's. */
  if (!channel->is_send && channel->first_id && !channel->is_refused) {
    const int released = eb_matching_release(channel->wire_peer, channel->first_id, channel->num_ids);
    if (rc == MPI_SUCCESS) rc = released;
  }
  destroy(channel);
  return rc;
}
