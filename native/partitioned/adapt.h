/* How a channel's segments follow the program: plans to the receiver, feedback to the sender. Returns MPI codes. */
#ifndef EB_ADAPT_H
#define EB_ADAPT_H

#include "partitioned/channel.h"

/* Room for what a sender records; none where no plan can be better. */
int eb_adapt_begin(eb_channel *channel);
void eb_adapt_end(eb_channel *channel);

/* What a sender or receiver does for a start that has begun: says where its times go, expects feedback. */
int eb_adapt_start(eb_channel *channel);

/* The sender looks for better segments while its last message is under way: that is when it has the time. For the one
 * thread that waits. */
void eb_adapt_propose(eb_channel *channel);

/* At a start for which a plan is due: the sender decides and sends it, the receiver posts its receive. Before eb_adapt_start. */
int eb_adapt_exchange(eb_channel *channel);

/* A receiver that has finished a start uses the plan that came with it, and reports when an observed start was complete. */
int eb_adapt_finish(eb_channel *channel);

#endif
