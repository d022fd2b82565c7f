/* MPI_Recv and the calls like it, and probes. The peer and the size of a message are those of its status. */
#include "recorder/calls/received.h"
#include "recorder/calls/wrap.h"

void eb_received(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, const MPI_Status *status) {
  if (rc != MPI_SUCCESS) {
    eb_add_call(span, call, communicator, EB_PEER_NONE, 0);
    return;
  }
  const int peer = eb_world_rank(communicator, status->MPI_SOURCE);
  eb_add_call_message(span, call, EB_ROLE_RECEIVED, communicator, peer, status->MPI_TAG,
                      peer == EB_PEER_NULL ? 0 : eb_status_bytes(status));
}

void eb_receive_created(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, int source, eb_request_kind kind,
                        uint32_t posted, const MPI_Request *request) {
  const int peer = rc == MPI_SUCCESS ? eb_world_rank(communicator, source) : EB_PEER_NONE;
  eb_add_call(span, call, communicator, peer, 0);
  /* Requests without a message may share one handle: MPICH does so for MPI_PROC_NULL. */
  if (rc != MPI_SUCCESS) return;
  if (peer == EB_PEER_NULL && kind == EB_REQUEST_RECEIVE) {
    eb_span_opened(span, request);
    return;
  }
  if (kind == EB_REQUEST_RECEIVE) eb_span_started(span);
  const eb_request receive = {kind, call, communicator, peer, EB_TAG_NONE, posted, kind == EB_REQUEST_RECEIVE, {0}};
  eb_requests_add(eb_request_key(*request), &receive);
}

/* A status of our own where the program wants none. */
#define BLOCKING(name, COUNT)                                                                                                 \
  EB_CALL_OF(EB_CALL_PART, name);                                                                                             \
  EB_EXPORT int name(void *buf, COUNT count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status) { \
    MPI_Status own;                                                                                                           \
    eb_span span = eb_span_begin(&name##_call);                                                                               \
    if (span.thread && status == MPI_STATUS_IGNORE) status = &own;                                                            \
    const int rc = EB_NEXT(name)(buf, count, datatype, source, tag, comm, status);                                            \
    if (eb_span_returned(&span, rc)) {                                                                                        \
      eb_received(&span, eb_call_number(&name##_call), rc, eb_span_communicator(&span, comm), status);                        \
      eb_span_end(&span);                                                                                                     \
    }                                                                                                                         \
    return rc;                                                                                                                \
  }
#define WITH_REQUEST(WRAP, name, COUNT, kind)                                                                           \
  WRAP(name, (void *buf, COUNT count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request), \
       (buf, count, datatype, source, tag, comm, request),                                                              \
       eb_receive_created(&span, call, rc, eb_span_communicator(&span, comm), source, kind, eb_trace_post(), request))
#define NON_BLOCKING(name, COUNT) WITH_REQUEST(EB_WRAP_PART, name, COUNT, EB_REQUEST_RECEIVE)
#define PERSISTENT(name, COUNT) WITH_REQUEST(EB_WRAP, name, COUNT, EB_REQUEST_PERSISTENT_RECEIVE)

BLOCKING(MPI_Recv, int)
NON_BLOCKING(MPI_Irecv, int)
PERSISTENT(MPI_Recv_init, int)
EB_LARGE(BLOCKING(MPI_Recv_c, MPI_Count))
EB_LARGE(NON_BLOCKING(MPI_Irecv_c, MPI_Count))
EB_LARGE(PERSISTENT(MPI_Recv_init_c, MPI_Count))

/* Time alone: the message is counted where it is received. */
static void probed(const eb_span *span, unsigned call, MPI_Comm comm) {
  eb_add_call(span, call, eb_span_communicator(span, comm), EB_PEER_NONE, 0);
}

EB_WRAP_PART(MPI_Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status),
             probed(&span, call, comm))
EB_WRAP_POLL(MPI_Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status), (source, tag, comm, flag, status),
             probed(&span, call, comm))
