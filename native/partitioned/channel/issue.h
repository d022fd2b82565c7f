/* One thread at a time sends the segments of all threads on a lane: this is faster than many threads inside the MPI
 * (64-byte messages of two threads: 380-620 ns each against 90-120 combined). Threads that complete segments of different lanes
 * send at the same time, also those of one channel.
 *
 * Below MPI_THREAD_MULTIPLE the same lock keeps all threads of the library but one out of the MPI. A correct program never
 * contends for it. Real programs do: their threads call MPI_Pready and MPI_Parrived concurrently at
 * MPI_THREAD_SERIALIZED or FUNNELED, most often in a parallel region that the main thread is part of, or waits for in
 * MPI_Wait. This is erroneous, but the MPIs accept it. Therefore:
 * - Whichever thread completes a segment sends it, at every level. Leaving it to the main thread would lose early
 *   sending where threads take turns, which MPI_THREAD_SERIALIZED allows, and hang a program whose main thread continues
 *   with a call of the MPI, such as the receive of an answer to that segment.
 * - A thread that finds the lock taken leaves its segment to the lock holder, which checks for such segments before and after
 *   it releases the lock: no segment is lost, and no thread waits for another in MPI_Pready.
 * - A waiting thread releases the lock after each test of its request, unless all segments of this process are ready:
 *   then no MPI_Pready can follow, and the thread may block inside the MPI.
 * The library does not protect a thread in a call of the MPI while others call MPI_Pready; neither do the MPIs. */
#ifndef EB_ISSUE_H
#define EB_ISSUE_H

#include "partitioned/channel/parts.h"

/* Before the first channel, by the thread that calls MPI_Init. */
void eb_issue_begin(void);

/* The segment is complete: it is sent by this thread, or by the one that is sending now. */
void eb_issue(eb_channel *channel, int segment);
/* The same of a channel that sends alone: by this thread. */
void eb_issue_alone(eb_channel *channel, int segment);

/* Sends what is waiting on a channel's lanes. A waiting thread calls it, because the thread that was sending may have been
 * descheduled. Below MPI_THREAD_MULTIPLE the caller has entered the MPI. */
void eb_issue_drain(const eb_channel *channel);

/* Below MPI_THREAD_MULTIPLE these keep other threads of the library out of the MPI; at that level they have no effect. Must not
 * be nested, or held while code of the program may be called. Leaving sends the segments that were queued meanwhile. */
void eb_mpi_enter(void);
bool eb_mpi_try_enter(void); /* false while another thread is inside */
void eb_mpi_leave(void);

/* A sender has been started, and is open until its last segment has been sent. For a thread that has entered the MPI, as below. */
void eb_issue_opened(const eb_channel *channel);
/* Below MPI_THREAD_MULTIPLE: may another thread still make a segment ready? Then no thread may block inside the MPI. */
bool eb_issue_is_open(void);

#endif
