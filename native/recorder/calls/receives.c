/* MPI_Recv and the calls like it, and probes. The peer and the size of a message are those of its status. */
#include "recorder/calls/quick.h"
#include "recorder/calls/received.h"
#include "recorder/calls/wrap.h"

void eb_received(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, const MPI_Status *status) {
  if (rc != MPI_SUCCESS) {
    eb_add_call(span, call, communicator, EB_PEER_NONE, 0);
    return;
  }
  const int peer = eb_world_rank(communicator, status->MPI_SOURCE);
  if (span->request) eb_span_of_request(span, span->request, span->begin_ticks);
  eb_add_call_message(span, call, EB_ROLE_RECEIVED, communicator, peer, status->MPI_TAG,
                      peer == EB_PEER_NULL ? 0 : eb_status_bytes(status));
  eb_span_of_none(span);
}

void eb_receive_created(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, int source, int tag,
                        uint64_t bytes, eb_request_kind kind, uint32_t serial, const MPI_Request *request) {
  const bool is_started = kind == EB_REQUEST_RECEIVE;
  const int peer = rc == MPI_SUCCESS ? eb_world_rank(communicator, source) : EB_PEER_NONE;
  /* Requests without a message may share one handle: MPICH does so for MPI_PROC_NULL. */
  const bool is_empty = rc == MPI_SUCCESS && is_started && peer == EB_PEER_NULL;
  if (is_empty) eb_span_opens(span);
  else eb_span_of_request(span, serial, 0);
  eb_add_call(span, call, communicator, peer, 0);
  eb_span_of_none(span);
  if (rc != MPI_SUCCESS) return;
  if (is_empty) {
    eb_span_opened(span, request);
    return;
  }
  if (is_started) eb_span_started(span);
  const eb_request receive = {.kind = kind,
                              .call = call,
                              .communicator = communicator,
                              .peer = peer,
                              .tag = EB_TAG_NONE,
                              .posted_tag = tag,
                              .posted_bytes = bytes,
                              .serial = serial,
                              .is_active = is_started,
                              .posted_ticks = span->begin_ticks};
  eb_requests_add(eb_request_key(*request), &receive);
}

#define QUICKLY(name, CALL, RECEIVED)                                                                  \
  eb_thread *const quick = eb_quick_message(caller, &name##_call, count, datatype, source, tag, comm); \
  if (quick) {                                                                                         \
    const int rc = CALL;                                                                               \
    if (rc == MPI_SUCCESS) RECEIVED;                                                                   \
    eb_quick_leave(quick, 0);                                                                          \
    return rc;                                                                                         \
  }
/* A status of our own where the program wants none. */
#define BLOCKING(name, COUNT)                                                                                                 \
  EB_CALL_OF(EB_CALL_PART, name);                                                                                             \
  EB_QUICK_WAY(name, (void *buf, COUNT count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status), \
               (buf, count, datatype, source, tag, comm, status),                                                             \
               QUICKLY(name, EB_NEXT(name)(buf, count, datatype, source, tag, comm, status), eb_quick_count(quick, false))) { \
    MPI_Status own;                                                                                                           \
    eb_span span = eb_span_open_of(&name##_call, caller);                                                                     \
    eb_span_about(&span, source, tag, comm, eb_known_bytes(&span, count, datatype));                                          \
    eb_span_wait(&span);                                                                                                      \
    eb_span_receives(&span);                                                                                                  \
    if (span.thread && status == MPI_STATUS_IGNORE) status = &own;                                                            \
    const int rc = EB_NEXT(name)(buf, count, datatype, source, tag, comm, status);                                            \
    if (eb_span_returned(&span, rc)) {                                                                                        \
      if (!eb_span_is_message(&span, EB_ROLE_RECEIVED))                                                                       \
        eb_received(&span, eb_call_number(&name##_call), rc, eb_span_communicator(&span, comm), status);                      \
      eb_span_end(&span);                                                                                                     \
    }                                                                                                                         \
    return rc;                                                                                                                \
  }
static void created(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, int source, int tag, uint64_t bytes,
                    eb_request_kind kind, uint32_t serial, const MPI_Request *request) {
  /* Of pages alone its own place says all that is counted. */
  if (eb_recorder_counts() || kind != EB_REQUEST_RECEIVE)
    eb_receive_created(span, call, rc, communicator, source, tag, bytes, kind, serial, request);
  if (rc == MPI_SUCCESS && kind == EB_REQUEST_RECEIVE)
    eb_span_posts(span, *request, EB_AWAITED_RECEIVE, call, communicator, eb_world_rank(communicator, source), tag, bytes, 0);
}
#define PARAMETERS(COUNT) (void *buf, COUNT count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
#define ARGUMENTS (buf, count, datatype, source, tag, comm, request)
#define CREATED(kind, SERIAL) \
  created(&span, call, rc, eb_span_communicator(&span, comm), source, tag, eb_bytes(&span, count, datatype), kind, SERIAL, request)
#define NON_BLOCKING(name, COUNT)                                                                             \
  EB_WRAP_QUICK(EB_CALL_OPEN, name, EB_NEXT(name), PARAMETERS(COUNT), ARGUMENTS,                              \
                QUICKLY(name, EB_NEXT(name) ARGUMENTS, eb_quick_post(quick, *request, EB_AWAITED_RECEIVE)), , \
                CREATED(EB_REQUEST_RECEIVE, eb_trace_post()))
#define PERSISTENT(name, COUNT) EB_WRAP(name, PARAMETERS(COUNT), ARGUMENTS, CREATED(EB_REQUEST_PERSISTENT_RECEIVE, 0))

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

EB_WRAP_ABOUT(EB_CALL_PART, MPI_Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status),
              eb_span_about(&span, source, tag, comm, EB_BYTES_UNKNOWN), probed(&span, call, comm))
#define PROBED_QUICKLY                                                   \
  eb_thread *const quick = eb_quick_thread(caller);                      \
  if (quick && eb_quick_poll(quick, caller, &MPI_Iprobe_call)) {         \
    const int rc = EB_NEXT(MPI_Iprobe)(source, tag, comm, flag, status); \
    eb_quick_polled(quick, 0);                                           \
    return rc;                                                           \
  }
EB_WRAP_QUICK(EB_CALL_POLL, MPI_Iprobe, EB_NEXT(MPI_Iprobe), (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
              (source, tag, comm, flag, status), PROBED_QUICKLY, , probed(&span, call, comm))
