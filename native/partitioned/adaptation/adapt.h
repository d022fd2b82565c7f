/* How a channel's segments follow the program: plans to the receiver, feedback to the sender. Returns MPI codes. */
#ifndef EB_ADAPT_H
#define EB_ADAPT_H

#include "partitioned/channel/channel.h"

/* Allocates what a sender records; nothing if no plan can be better. */
int eb_adapt_begin(eb_channel *channel);
void eb_adapt_end(eb_channel *channel);

/* Prepares a start that has begun: selects the record for its times, expects feedback. */
int eb_adapt_start(eb_channel *channel);

/* The sender searches for better segments while its last message is in flight, when it would otherwise be idle. Called
 * only by the thread that waits. */
void eb_adapt_propose(eb_channel *channel);

/* At a start with a plan: the sender decides and sends the plan, the receiver posts its receive. Call before eb_adapt_start. */
int eb_adapt_exchange(eb_channel *channel);

/* A receiver that has finished a start applies the plan received with it, and reports the completion time of an observed start. */
int eb_adapt_finish(eb_channel *channel);

#endif
