/* The wire side of a channel: its segments, which partitions they hold, and the MPI's requests. Returns MPI codes. */
#ifndef EB_WIRE_H
#define EB_WIRE_H

#include "partitioned/channel.h"

/* The segments that both sides cut a total into without a word; -1 when memory is short. */
int eb_wire_canonical(const eb_channel *channel, int64_t total_bytes, eb_segments *segments);

/* Cuts the transfer into pieces of step_bytes, or canonically where that is 0. */
int eb_wire_cut(eb_channel *channel, int64_t step_bytes);

/* Sets which partitions the segments hold, after the old requests were dropped and the segments set; requests are to be
 * built. */
int eb_wire_map(eb_channel *channel);

/* Makes a persistent request for every segment. */
int eb_wire_build(eb_channel *channel);

/* Memory for the copies of a start that is sent from them. MPI_ERR_NO_MEM: none was taken. */
void eb_wire_drop_copies(eb_channel *channel); /* those that are left */
int eb_wire_reserve_copies(eb_channel *channel);

/* Frees requests, maps and copies that were not sent. */
void eb_wire_drop(eb_channel *channel);

/* Ends what is under way after an error. Receives are cancelled; a send cannot be, and its buffer must stay. */
void eb_wire_abandon(eb_channel *channel);

/* Waits for all segments, and for a plan that comes with them; or asks. The first request's code that is an error. */
int eb_wire_wait(eb_channel *channel);
int eb_wire_test(eb_channel *channel, bool *done);

/* Asks about one segment, or about the plan that comes with them. */
int eb_wire_test_one(eb_channel *channel, int request, int *flag);

#endif
