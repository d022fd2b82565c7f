/* Counting of calls that receive. */
#ifndef EB_RECEIVED_H
#define EB_RECEIVED_H

#include "recorder/recording/recorder.h"

/* A call that has received the message of `status`. */
void eb_received(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, const MPI_Status *status);

/* A call that has created the request of a receive; `kind`: whether it is persistent. `posted`: see eb_traced. */
void eb_receive_created(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, int source, eb_request_kind kind,
                        uint32_t posted, const MPI_Request *request);

#endif
