/* A channel's side of a direct transfer: the system copies its segments from the memory of one rank to that of the other. Functions that
 * return int return MPI codes. */
#ifndef EB_NODE_DIRECT_H
#define EB_NODE_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/transfer.h"
#include "partitioned/node/direct.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/wire/buffer.h"

typedef struct eb_node_direct eb_node_direct;

/* Can there be one, as far as the transfer shows? Takes nothing. */
bool eb_node_direct_is_possible(const eb_transfer *transfer);
/* And is there memory for one now? */
bool eb_node_direct_has_room(const eb_transfer *transfer);

/* Of a sender: takes memory for what the two sides tell each other; *offset says to the receiver where it is. NULL: there is no more, or
 * the system cannot copy the program's memory, which may be a device's, or allows it no longer. The pointers must stay valid. */
eb_node_direct *eb_node_direct_take(const eb_transfer *transfer, const eb_buffer *buffer);
int64_t eb_node_direct_offset(const eb_node_direct *direct);
/* Of a receiver: uses what the sender has taken. NULL if it cannot be that, or memory is short. */
eb_node_direct *eb_node_direct_join(const eb_transfer *transfer, const eb_buffer *buffer, int64_t offset);
/* A receiver that could not join, or has no need to: the sender of what is there need not wait for it. */
void eb_node_direct_refuse_at(int64_t offset);
/* This side will not use it any more. NULL has no effect. */
void eb_node_direct_leave(eb_node_direct *direct);
/* This side has failed: nothing is copied from or to its memory any more, and the other side does not wait for it. */
void eb_node_direct_stop(eb_node_direct *direct);
/* Of a sender in a start whose segments are all ready: the library goes on until all is copied, and then leaves it; `memory`, or NULL, is
 * freed then. The transfer and the buffer may end before. */
void eb_node_direct_adopt(eb_node_direct *direct, void *memory);
/* Makes progress on what was adopted; returns how many are left. Cheap if there are none. */
int eb_node_direct_progress(void);

/* The segments of the next starts. */
int eb_node_direct_cut(eb_node_direct *direct, const eb_segments *segments);
/* Begins a start. */
void eb_node_direct_open(eb_node_direct *direct, uint64_t start);

/* A segment of a sender is ready, and copied if the receiver is there and does not wait for it; any number of threads, each another
 * segment. */
int eb_node_direct_send(eb_node_direct *direct, int segment);
/* A receiver's thread waits for all of the start from now on, or no longer. */
void eb_node_direct_set_waiting(eb_node_direct *direct, bool is_waiting);

/* Copies what is ready of a segment, or of all: *done if that is everything. A long segment is not copied in one test. */
int eb_node_direct_test(eb_node_direct *direct, int segment, bool *done);
int eb_node_direct_test_all(eb_node_direct *direct, bool *done);
/* Would a test find something to do, or something done? */
bool eb_node_direct_has_come(const eb_node_direct *direct);
/* Is all of the start known to be done? */
bool eb_node_direct_is_done(const eb_node_direct *direct);

#endif
