/* Counting of calls that receive. */
#ifndef EB_RECEIVED_H
#define EB_RECEIVED_H

#include "recorder/recording/recorder.h"

/* A call that has received the message of `status`; the request that it took is that of the span. */
void eb_received(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, const MPI_Status *status);

/* A call that has created the request of a receive; `kind`: whether it is persistent. `tag`, `bytes`: as the call says. `serial`: see eb_traced. */
void eb_receive_created(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, int source, int tag,
                        uint64_t bytes, eb_request_kind kind, uint32_t serial, const MPI_Request *request);

#endif
