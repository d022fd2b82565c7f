/* How a channel's segments follow the program: plans to the receiver, reports to the sender. Returns MPI codes. */
#ifndef EB_ADAPT_H
#define EB_ADAPT_H

#include "partitioned/channel.h"

/* Do the two sides exchange plans and reports? Both answer alike. */
bool eb_adapt_exchanges(const eb_channel *channel);

/* Can any plan for this transfer be better than one segment? */
bool eb_adapt_can_gain(const eb_channel *channel);

/* At a start for which a plan is due: the sender makes and sends it, the receiver posts its receive. */
int eb_adapt_exchange(eb_channel *channel);

/* Turns the plan at hand into the segments of the next start, if they differ from today's. */
int eb_adapt_set_next(eb_channel *channel);

/* A receiver tells when the recorded starts were complete. */
int eb_adapt_report(eb_channel *channel);

/* Drops reports that have come for a sender that goes. */
void eb_adapt_forget(eb_channel *channel);

#endif
