/* The messages of a channel: its segments, their partitions, and the MPI's requests. Returns MPI codes. */
#ifndef EB_WIRE_H
#define EB_WIRE_H

#include "partitioned/channel/channel.h"

/* The segments of a total that both sides derive without a message; -1 when memory is short. */
int eb_wire_canonical(const eb_channel *channel, int64_t total_bytes, eb_segments *segments);

/* Divides the transfer into segments of step_bytes, or into the canonical ones if that is 0. */
int eb_wire_cut(eb_channel *channel, int64_t step_bytes);

/* Sets which partitions the segments hold, after the old requests were dropped and the segments set; requests are to be
 * built. */
int eb_wire_map(eb_channel *channel);

/* Creates a persistent request for every segment. */
int eb_wire_build(eb_channel *channel);

/* Allocates the copies of a start that is sent from copies. MPI_ERR_NO_MEM: nothing was allocated. */
void eb_wire_drop_copies(eb_channel *channel); /* those that are left */
int eb_wire_reserve_copies(eb_channel *channel);

/* Frees requests, maps and copies that were not sent. */
void eb_wire_drop(eb_channel *channel);

/* Ends the messages in flight after an error. Receives are cancelled; a send cannot be, and its buffer must stay. */
void eb_wire_abandon(eb_channel *channel);

/* Waits for or tests all segments, and a plan sent with them. Returns the first error code. */
int eb_wire_wait(eb_channel *channel);
int eb_wire_test(eb_channel *channel, bool *done);

/* Tests one segment, or the plan sent with them. */
int eb_wire_test_one(eb_channel *channel, int request, int *flag);

#endif
