/* Messages whose buffers the library owns, kept until they have left. */
#ifndef EB_OUTBOX_H
#define EB_OUTBOX_H

#include <mpi.h>
#include <stddef.h>

/* Sends a copy of the bytes without waiting for the receiver; returns an MPI error code. */
int eb_outbox_send(const void *bytes, size_t num_bytes, int peer, int tag, MPI_Comm comm);

/* Frees what has left; cheap when there is nothing. Call at every opportunity: it is the progress of these sends. */
void eb_outbox_progress(void);

/* Waits until everything has left. A correct program receives all of it (only what nobody will ever match, the
 * setup of a request that was freed at both ends, may stay: it is small and leaves by itself). */
void eb_outbox_finish(void);

#endif
