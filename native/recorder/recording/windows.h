/* Windows of the program: whose memory a rank of one means. */
#ifndef EB_RECORDED_WINDOWS_H
#define EB_RECORDED_WINDOWS_H

#include <limits.h>

#include "recorder/recording/recorder.h"

/* The call is collective over the window, or concerns `rank` of it. A window that this thread does not know yet is entered after the
 * call, by eb_window_entered. */
void eb_window_enters(const eb_span *span, MPI_Win win);
void eb_window_entered(const eb_span *span, unsigned call, MPI_Win win);

/* MPI_Win_post and MPI_Win_start: the ranks of the group are told, or awaited, until the epoch ends. */
typedef enum { EB_EPOCH_ACCESS, EB_EPOCH_EXPOSURE } eb_epoch_side;
void eb_window_epoch(const eb_span *span, MPI_Win win, eb_epoch_side side, MPI_Group group);
void eb_window_starts(const eb_span *span, MPI_Win win, MPI_Group group); /* before the call */

/* The call waits for the ranks of the epoch to call MPI_Win_post or MPI_Win_complete; and it has returned. */
void eb_window_awaits(const eb_span *span, MPI_Win win, eb_epoch_side side);
void eb_window_awaited(const eb_span *span, MPI_Win win, eb_epoch_side side, bool is_over);

/* The call locks or unlocks the window of `rank`, or waits for what this rank has done there; EB_ALL_RANKS: of all ranks, a number
 * that no MPI has for MPI_PROC_NULL, of which nothing is noted. `type`: of a lock that begins, EB_LOCK_SHARED or
 * EB_LOCK_EXCLUSIVE. */
enum { EB_ALL_RANKS = INT_MIN, EB_LOCK_NONE = -1 };
void eb_window_concerns(const eb_span *span, MPI_Win win, int rank, int type);
/* The lock has begun, or ended. */
void eb_window_locked(const eb_span *span, unsigned call, MPI_Win win, int rank, int type);
void eb_window_unlocked(const eb_span *span, MPI_Win win, int rank);

/* A call has created the window over the communicator. */
void eb_window_created(const eb_span *span, MPI_Win win, MPI_Comm comm);

/* The communicator that the window was created over; for one whose creation was not seen, one with the same members. NULL
 * after a failed call, and where memory is short. */
eb_communicator *eb_window_communicator(const eb_span *span, MPI_Win win);

#endif
