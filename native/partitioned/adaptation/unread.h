/* Segmentation messages of which a receiver that has failed does not know whether they have come. They may name memory in which their
 * senders would wait for it. */
#ifndef EB_UNREAD_H
#define EB_UNREAD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/transfer.h"

/* Declines what a message of a transfer names as soon as it has come, which is now if its request is null. paths_joined: bits of paths
 * whose memory the receiver has refused already. Owns message and request afterwards; false: there is no memory, and it does not. */
bool eb_unread_keep(const eb_transfer *transfer, unsigned paths_joined, int64_t *message, MPI_Request request);
/* Looks for such messages; returns how many are still awaited. Cheap if there are none. */
int eb_unread_progress(void);
/* They are awaited no longer. */
void eb_unread_cancel(void);

#endif
