/* The messages of a channel: its segments, their tags, and the MPI's requests. Functions return MPI codes. */
#ifndef EB_WIRE_H
#define EB_WIRE_H

#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/send_queue.h"
#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/wire/buffer.h"

/* Bases that are no tag. */
enum { EB_BASE_UNKNOWN = -1, EB_BASE_OF_FRAMES = INT_MAX };

/* The members belong to wire.h and wire.c. */
typedef struct {
  const eb_transfer *transfer;
  eb_buffer *buffer;
  _Atomic int base; /* of the tags; or EB_BASE_OF_FRAMES; or a receiver does not know them yet */
  int lane;
  int64_t num_ids; /* that the tags span */
  eb_segments segments;
  MPI_Request *requests;    /* [segments.num + 1]: of the segments, and of the segmentation message; null: none in flight */
  eb_pending_send **copies; /* [segments.num] the memory of copies that are not sent yet; NULL: no start from copies */
  /* Of a channel that has no tags: see frames.h. */
  int64_t id;
  uint32_t framed_start;
  bool *taken; /* [segments.num] of a receiver: the frames of this start */
  /* Written by the sending thread, while other threads mark partitions and read the members above. */
  _Alignas(64) atomic_int num_unsent;
  _Atomic int error;   /* from sending or matching; no later start succeeds */
  bool is_built;       /* what messages are made of is fixed, and persistent requests fit the segments */
  bool is_copying;     /* a sender whose receiver may not have processed the setup */
  bool compares_sizes; /* a receiver in its first start */
} eb_wire;

/* Both pointers must stay valid. */
void eb_wire_begin(eb_wire *wire, const eb_transfer *transfer, eb_buffer *buffer);
void eb_wire_end(eb_wire *wire);

/* The segments of a transfer before the two sides have agreed on others: of step_bytes each, or, if that is 0, those that both
 * sides derive without a message. -1 when memory is short. */
int eb_wire_first_segments(const eb_transfer *transfer, int64_t total_bytes, int64_t step_bytes, eb_segments *segments);

/* Replaces the segments, which the wire then owns. Requests are to be built. */
int eb_wire_set_segments(eb_wire *wire, eb_segments segments);

static inline const eb_segments *eb_wire_segments(const eb_wire *wire) { return &wire->segments; }

static inline int64_t eb_wire_segment_bytes(const eb_wire *wire, int segment) {
  return wire->segments.first_byte[segment + 1] - wire->segments.first_byte[segment];
}

/* The tags begin at `base` and span num_ids ids. Other threads may wait for them: call this last. */
void eb_wire_set_tags(eb_wire *wire, int base, int64_t num_ids, int lane);
/* The channel has an id, and no tags: its messages are frames. Also the last call. */
void eb_wire_use_frames(eb_wire *wire, int64_t id);
/* Are the tags known, or that there are none? */
static inline bool eb_wire_has_tags(const eb_wire *wire) { return atomic_load(&wire->base) != EB_BASE_UNKNOWN; }
static inline bool eb_wire_is_framed(const eb_wire *wire) {
  return atomic_load_explicit(&wire->base, memory_order_acquire) == EB_BASE_OF_FRAMES;
}
int eb_wire_segmentation_tag(const eb_wire *wire);
int eb_wire_feedback_tag(const eb_wire *wire);

static inline int eb_wire_lane(const eb_wire *wire) { return wire->lane; }

static inline int eb_wire_error(const eb_wire *wire) { return atomic_load(&wire->error); }
static inline void eb_wire_set_error(eb_wire *wire, int code) { atomic_store(&wire->error, code); }

/* How long the MPI takes to pack a partition of a sender's start: 0 if messages contain the program's memory as it is. */
double eb_wire_measure_pack_s(const eb_wire *wire);

/* Prepares the requests of the segments, unless that is done. */
int eb_wire_build(eb_wire *wire);

/* ---- A start ---- */

/* The first data of a sender goes out from copies: the receiver may be anywhere, even blocked in a call that waits for this
 * process, before it has processed the setup, and the sender's completion must not depend on it. */
static inline bool eb_wire_is_copying(const eb_wire *wire) { return wire->is_copying; }
void eb_wire_begin_copying(eb_wire *wire);
void eb_wire_end_copying(eb_wire *wire);
/* Allocates the copies of a start. MPI_ERR_NO_MEM: nothing was allocated. */
int eb_wire_reserve_copies(eb_wire *wire);

/* Begins a start of a sender. */
int eb_wire_open(eb_wire *wire);
/* Posts the receives of a start. */
int eb_wire_post(eb_wire *wire, bool is_first_start);

/* Sends a segment of a sender: by one thread at a time. An error is kept. */
void eb_wire_send(eb_wire *wire, int segment);

/* A segment has been sent; true for the last one of the start: from then on a thread that waits may start the request again,
 * or free it. */
static inline bool eb_wire_count_sent(eb_wire *wire) {
  if (wire->segments.num == 1) {
    atomic_store_explicit(&wire->num_unsent, 0, memory_order_release);
    return true;
  }
  return atomic_fetch_sub_explicit(&wire->num_unsent, 1, memory_order_release) == 1;
}

static inline bool eb_wire_has_unsent(const eb_wire *wire) {
  return atomic_load_explicit(&wire->num_unsent, memory_order_acquire) > 0;
}

/* Where the request for the segmentation message of a receiver goes, which is waited for with the segments. */
static inline MPI_Request *eb_wire_segmentation_request(const eb_wire *wire) { return &wire->requests[wire->segments.num]; }

/* Waits for or tests all segments, and a segmentation message sent with them. Returns the first error code. */
int eb_wire_wait(eb_wire *wire);
int eb_wire_test(eb_wire *wire, bool *done);
/* The same without the segmentation message. */
int eb_wire_test_segments(eb_wire *wire, bool *done);
/* Tests one segment, or the segmentation message, whose index is the number of segments. */
int eb_wire_test_one(eb_wire *wire, int index, bool *done);

/* Leaves the messages of a sender to the send queue, with the staging memory. MPI_ERR_NO_MEM: nothing was changed. */
int eb_wire_leave_in_flight(eb_wire *wire);

/* Ends the messages in flight after an error. Receives are cancelled; a send cannot be, and its buffer must stay. */
void eb_wire_abandon(eb_wire *wire);

#endif
