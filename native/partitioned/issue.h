/* Lets one thread at a time send the segments of all on a lane: many threads inside the MPI slow one another down more than
 * one that does their work (64-byte messages of two threads: 380-620 ns each against 90-120 combined).
 *
 * Below MPI_THREAD_MULTIPLE the same lock keeps every thread but one of ours out of the MPI. A correct program never
 * finds it taken. Programs in the field do: their threads call MPI_Pready and MPI_Parrived side by side at
 * MPI_THREAD_SERIALIZED or FUNNELED, most often in a parallel region that the main thread is part of, or waits for in
 * MPI_Wait. Erroneous as that is, the MPIs let it pass. So:
 * - Whichever thread completes a segment sends it, at every level. Leaving it to the main thread would lose early
 *   sending where threads take turns, which MPI_THREAD_SERIALIZED allows, and hang a program whose main thread goes on
 *   with a call that is not ours, such as the receive of an answer to that segment.
 * - Who finds the lock taken leaves its segment to the thread that has it, which looks for such segments before and after
 *   it lets go: nothing is lost, and no thread waits for another in MPI_Pready.
 * - A thread that waits lets go of the lock after each look at its request, unless no segment is left to be made ready
 *   in this process: then no MPI_Pready can come, and it may block inside the MPI.
 * What is left is a thread in a call that is not ours while others call MPI_Pready; no MPI protects itself there either. */
#ifndef EB_ISSUE_H
#define EB_ISSUE_H

#include "partitioned/channel.h"

/* The segment is complete: it is sent by this thread, or by the one that is sending now. */
void eb_issue(eb_channel *channel, int segment);

/* Sends what is waiting on a channel's lane. Whoever waits calls it, because the thread that was sending may have been
 * descheduled. Below MPI_THREAD_MULTIPLE the caller has entered the MPI. */
void eb_issue_drain(const eb_channel *channel);

/* Below MPI_THREAD_MULTIPLE these keep other threads of ours out of the MPI; at that level they do nothing. Not to be
 * nested, and not to be held while code of the program may be called. Leaving sends what was left meanwhile. */
void eb_mpi_enter(void);
bool eb_mpi_try_enter(void); /* false while another thread is inside */
void eb_mpi_leave(void);

/* A sender has been started; eb_channel_issue tells when the last of its segments has been sent. */
void eb_issue_opened(void);
void eb_issue_closed(void);
/* Below MPI_THREAD_MULTIPLE: may another thread still make a segment ready? Then nobody may block inside the MPI. */
bool eb_issue_is_open(void);

#endif
