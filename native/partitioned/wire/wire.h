/* The messages of a channel: its segments, their tags, and the MPI's requests. Functions return MPI codes. */
#ifndef EB_WIRE_H
#define EB_WIRE_H

#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/wire/buffer.h"
#include "partitioned/wire/node_direct.h"
#include "partitioned/wire/node_ring.h"

/* Bases that are no tag. */
enum { EB_BASE_UNKNOWN = -1, EB_BASE_OF_FRAMES = INT_MAX };

/* The members belong to wire.h and wire.c. */
typedef struct {
  const eb_transfer *transfer;
  eb_buffer *buffer;
  _Atomic int base; /* of the tags; or EB_BASE_OF_FRAMES; or a receiver does not know them yet */
  int lane;         /* the first of the request */
  bool is_serial;   /* a start of a sender that began with copies: one lane's lock guards all of its segments */
  int64_t num_ids; /* that the tags span */
  eb_segments segments;
  MPI_Request *requests;    /* [segments.num + 1]: of the segments, and of the segmentation message; null: none in flight */
  eb_pending_send **copies; /* [segments.num] the memory of copies that are not sent yet; NULL: no start from copies */
  /* Of a channel that has no tags: see frames.h. */
  int64_t id;
  bool *taken; /* [segments.num] of a receiver: the frames of this start */
  uint64_t start;     /* the current one, from 1 */
  eb_node_ring *ring;     /* NULL: no start has travelled in a ring */
  eb_node_direct *direct; /* the same of direct transfers */
  unsigned num_looks;     /* for something in memory, with the MPI called beside */
  bool is_peer_gone;      /* its process had ended when it was looked for last */
  /* Written by the sending thread, while other threads mark partitions and read the members above. */
  _Alignas(64) atomic_int num_unsent;
  _Atomic int error;   /* from sending or matching; no later start succeeds */
  bool is_built;       /* what messages are made of is fixed, and persistent requests, or the ring, fit the segments */
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

/* Replaces how the segments are spread over lanes; before requests are built. */
static inline void eb_wire_set_spread(eb_wire *wire, eb_spread spread) { wire->segments.spread = spread; }

/* The tags begin at `base` and span num_ids ids; `lane` is the first of the request. Other threads may wait for them: call this
 * last. */
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

/* The lane that a segment is sent on. Frames use the tag of the first lane. */
static inline int eb_wire_lane(const eb_wire *wire, int segment) {
  return eb_domain.num_lanes == 1 || eb_wire_is_framed(wire) ? 0 : eb_domain_lane(&wire->segments, segment, wire->lane);
}
/* The number of lanes on which there may be segments: the k-th is eb_wire_lane_at. */
static inline int eb_wire_num_lanes(const eb_wire *wire) {
  const int64_t asked = wire->segments.spread.num_lanes;
  if (eb_domain.num_lanes == 1 || wire->segments.num == 1 || eb_wire_is_framed(wire)) return 1;
  return asked > 0 && asked < eb_domain.num_lanes ? (int)asked : eb_domain.num_lanes;
}
static inline int eb_wire_lane_at(const eb_wire *wire, int k) { return (wire->lane + k) % eb_domain.num_lanes; }

/* The lane whose lock a thread needs to send the segment: the segment's own, except in a start that began with copies, which ends
 * the copying for all segments. */
static inline int eb_wire_sending_lane(const eb_wire *wire, int segment) {
  return wire->is_serial ? wire->lane : eb_wire_lane(wire, segment);
}

static inline int eb_wire_error(const eb_wire *wire) { return atomic_load(&wire->error); }
static inline void eb_wire_set_error(eb_wire *wire, int code) { atomic_store(&wire->error, code); }

/* Does this start travel through memory of the node, without messages? */
static inline bool eb_wire_is_in_memory(const eb_wire *wire) { return wire->segments.path != EB_PATH_MESSAGE; }
static inline bool eb_wire_is_on_ring(const eb_wire *wire) { return wire->segments.path == EB_PATH_RING; }

/* May segments be sent by any number of threads at once, without entering the MPI? */
static inline bool eb_wire_sends_alone(const eb_wire *wire) {
  return eb_wire_is_in_memory(wire) && !eb_buffer_is_staged(wire->buffer);
}

/* Is what was sent a copy, which the library keeps for the receiver? */
static inline bool eb_wire_sends_copies(const eb_wire *wire) { return wire->is_copying || eb_wire_is_on_ring(wire); }

/* Of a sender: can its transfer travel on a path, as far as its size and its peer show? Takes nothing. */
bool eb_wire_may_use(const eb_wire *wire, eb_path path);
/* Is there memory for it now, or has it some already? */
bool eb_wire_has_room(const eb_wire *wire, eb_path path);
static inline bool eb_wire_has_memory(const eb_wire *wire, eb_path path) {
  return path == EB_PATH_RING ? wire->ring != NULL : wire->direct != NULL;
}
/* Can starts with so many segments? Takes memory for them, or keeps what was taken before; *offset is where it is. */
bool eb_wire_reserve(eb_wire *wire, eb_path path, int num_segments, int64_t *offset);
/* Of a receiver: the memory that the sender has taken, for the starts that it names. Returns an MPI code. */
int eb_wire_join(eb_wire *wire, eb_path path, int64_t offset);
/* The same, but it will not use the memory, and the sender need not wait for it. */
void eb_wire_decline(const eb_transfer *transfer, eb_path path, int64_t offset);
/* This side will not use the memory of a path any more, if it has any. Not within a start that travels in it. */
void eb_wire_leave_memory(eb_wire *wire, eb_path path);

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
int eb_wire_open(eb_wire *wire, uint64_t start);
/* Posts the receives of a start. */
int eb_wire_post(eb_wire *wire, uint64_t start);

/* Sends a segment of a sender: by one thread at a time for each sending lane, unless eb_wire_sends_alone. An error is kept. */
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

/* Makes progress on the lanes of the segments, without testing them. Returns an MPI code: an error also if what is awaited in memory
 * can no longer come, because the peer's process has ended. */
int eb_wire_progress(eb_wire *wire);

/* Waits for or tests all segments, and a segmentation message sent with them. Returns the first error code. Only a test may be
 * made of what travels in shared memory. */
int eb_wire_wait(eb_wire *wire);
int eb_wire_test(eb_wire *wire, bool *done);
/* The same without the segmentation message. */
int eb_wire_test_segments(eb_wire *wire, bool *done);
/* Tests one segment, or the segmentation message, whose index is the number of segments. */
int eb_wire_test_one(eb_wire *wire, int index, bool *done);

/* Is the slot of the next start free, without which no start of a sender is complete? True without shared memory. */
bool eb_wire_next_is_free(const eb_wire *wire);
/* A thread of a receiver waits for all of a start, from now on or no longer. */
static inline void eb_wire_set_waiting(const eb_wire *wire, bool is_waiting) {
  if (wire->segments.path == EB_PATH_DIRECT) eb_node_direct_set_waiting(wire->direct, is_waiting);
}
/* Of a start that travels in shared memory: waits for about a microsecond for something that a test would find there; false if
 * nothing has come, or all has. */
bool eb_wire_spin(const eb_wire *wire);

/* Leaves the messages of a sender to the send queue, with the staging memory. MPI_ERR_NO_MEM: nothing was changed. */
int eb_wire_leave_in_flight(eb_wire *wire);

/* After an error: the other side does not wait in memory for this one, whose memory is no longer copied. */
void eb_wire_refuse(eb_wire *wire);
/* Ends the messages in flight after an error. Receives are cancelled; a send cannot be, and its buffer must stay. */
void eb_wire_abandon(eb_wire *wire);

#endif
