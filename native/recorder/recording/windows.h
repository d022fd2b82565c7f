/* Windows of the program: whose memory a rank of one means. */
#ifndef EB_RECORDED_WINDOWS_H
#define EB_RECORDED_WINDOWS_H

#include "recorder/recording/recorder.h"

/* A call has created the window over the communicator. */
void eb_window_created(const eb_span *span, MPI_Win win, MPI_Comm comm);

/* The communicator that the window was created over; for one whose creation was not seen, one with the same members. NULL
 * after a failed call, and where memory is short. */
eb_communicator *eb_window_communicator(const eb_span *span, MPI_Win win);

#endif
