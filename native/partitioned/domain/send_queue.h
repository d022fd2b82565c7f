/* Pending sends whose buffers the library owns, kept until they are complete. */
#ifndef EB_SEND_QUEUE_H
#define EB_SEND_QUEUE_H

#include <mpi.h>
#include <stddef.h>

typedef enum { EB_SEND_DATA, EB_SEND_CONTROL } eb_send_kind;

typedef struct eb_pending_send eb_pending_send;

/* Memory for a copy, so that it is there before the first of several messages is sent; NULL when memory is short. It ends with
 * the sending, or is dropped. */
eb_pending_send *eb_send_queue_reserve(size_t num_bytes);
void eb_send_queue_drop(eb_pending_send *reserved);

/* The message begins with these bytes, for which memory must have been reserved, too. */
void eb_send_queue_set_header(eb_pending_send *reserved, const void *bytes, size_t num_bytes);

/* Sends a copy of the bytes without waiting for the receiver; returns an MPI error code. Data is the program's, whose memory
 * may be a device's. */
int eb_send_queue_send_reserved(eb_pending_send *reserved, eb_send_kind kind, const void *bytes, size_t num_bytes, int peer,
                                int tag, MPI_Comm comm);
/* The same, allocating the memory in this call. */
int eb_send_queue_send(eb_send_kind kind, const void *bytes, size_t num_bytes, int peer, int tag, MPI_Comm comm);

/* Takes over transfers in flight, among requests that may be null or inactive: the requests, their array and
 * `memory` (or NULL) are freed when all are complete. MPI_ERR_NO_MEM: nothing was taken over. */
int eb_send_queue_adopt(eb_send_kind kind, int num, MPI_Request *requests, void *memory);

/* Frees completed sends; cheap if there is nothing to do. Call at every opportunity: it progresses these sends. */
void eb_send_queue_progress(void);

/* The number of pending sends: of data, and of control messages. */
int eb_send_queue_num_data(void);
int eb_send_queue_num_control(void);

#endif
