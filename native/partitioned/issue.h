/* Lets one thread at a time send the segments of all on a lane: many threads inside the MPI slow one another down more than
 * one that does their work (64-byte messages of two threads: 380-620 ns each against 90-120 combined). */
#ifndef EB_ISSUE_H
#define EB_ISSUE_H

#include "partitioned/channel.h"

/* The segment is complete: it is sent by this thread, or by the one that is sending now. */
void eb_issue(eb_channel *channel, int segment);

/* Sends what is waiting on a lane. Whoever waits calls it, because the thread that was sending may have been descheduled. */
void eb_issue_drain(int lane);

#endif
