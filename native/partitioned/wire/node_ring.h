/* A channel's side of a ring: its segments travel in memory that its two ranks share. Functions that return int return MPI codes. */
#ifndef EB_NODE_RING_H
#define EB_NODE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/transfer.h"
#include "partitioned/node/ring.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/wire/buffer.h"

typedef struct eb_node_ring eb_node_ring;

/* Can there be one, as far as the transfer shows? Takes nothing. */
bool eb_node_ring_is_possible(const eb_transfer *transfer);

/* And is there memory for one now? */
bool eb_node_ring_has_room(const eb_transfer *transfer);

/* Of a sender: takes memory; *offset says to the receiver where it is. NULL: there is no more, or the processor cannot read the
 * program's memory, which may be a device's. The pointers must stay valid. */
eb_node_ring *eb_node_ring_take(const eb_transfer *transfer, const eb_buffer *buffer);
int64_t eb_node_ring_offset(const eb_node_ring *ring);
/* Of a receiver: uses what the sender has taken. NULL if it cannot be that, or memory is short. */
eb_node_ring *eb_node_ring_join(const eb_transfer *transfer, const eb_buffer *buffer, int64_t offset);
/* The same, of a receiver that has no ring: its sender need not wait for it. */
void eb_node_ring_refuse_at(const eb_transfer *transfer, int64_t offset);
/* This side will not use the memory any more. NULL has no effect. */
void eb_node_ring_leave(eb_node_ring *ring);
/* The receiver has failed, and the sender need not wait for it. */
void eb_node_ring_refuse(eb_node_ring *ring);

/* The segments of the next starts, which must stay. */
int eb_node_ring_cut(eb_node_ring *ring, const eb_segments *segments);
/* Begins a start. */
void eb_node_ring_open(eb_node_ring *ring, uint64_t start);

/* Copies a segment of a sender; any number of threads, each another one. */
void eb_node_ring_send(const eb_node_ring *ring, int segment);
/* Is the slot of a sender's start free? */
bool eb_node_ring_is_free(const eb_node_ring *ring, uint64_t start);

/* Receives what has come of a segment, or of all: *done if that is everything. What a sender has sent is done. */
int eb_node_ring_test(eb_node_ring *ring, int segment, bool *done);
int eb_node_ring_test_all(eb_node_ring *ring, bool *done);
/* Has something come for a receiver, so that a test would receive it? */
bool eb_node_ring_has_come(const eb_node_ring *ring);
/* Has a receiver copied all of the start? */
bool eb_node_ring_is_read(const eb_node_ring *ring);

#endif
