/* MPI_Mprobe, MPI_Mrecv and their variants. A message does not say its communicator: the probe does. */
#include "recorder/calls/received.h"
#include "recorder/calls/wrap.h"

static void matched(const eb_span *span, unsigned call, int rc, bool is_matched, MPI_Comm comm, const MPI_Message *message) {
  eb_communicator *communicator = eb_span_communicator(span, comm);
  eb_add_call(span, call, communicator, EB_PEER_NONE, 0);
  if (rc != MPI_SUCCESS || !is_matched || *message == MPI_MESSAGE_NO_PROC) return;
  const eb_request probed = {.kind = EB_REQUEST_MESSAGE,
                             .call = call,
                             .communicator = communicator,
                             .peer = EB_PEER_ANY,
                             .tag = EB_TAG_NONE,
                             .serial = eb_trace_post()};
  eb_requests_add(eb_message_key(*message), &probed);
}

EB_WRAP_ABOUT(EB_CALL_PART, MPI_Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
              (source, tag, comm, message, status), eb_span_about(&span, source, tag, comm, EB_BYTES_UNKNOWN),
              matched(&span, call, rc, true, comm, message))
EB_WRAP_POLL(MPI_Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
             (source, tag, comm, flag, message, status), matched(&span, call, rc, *flag != 0, comm, message))

/* What is known of the message of the key since it was probed. */
static eb_request take(uint64_t key, eb_ticket ticket) {
  eb_request probed;
  return eb_requests_complete(key, ticket, &probed) ? probed : (eb_request){0};
}

#define BLOCKING(name, COUNT)                                                                               \
  EB_CALL_OF(EB_CALL_PART, name);                                                                           \
  EB_EXPORT int name(void *buf, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status) { \
    MPI_Status own;                                                                                         \
    eb_span span = eb_span_begin(&name##_call);                                                             \
    const uint64_t key = eb_message_key(*message); /* the call ends the message */                          \
    const eb_ticket ticket = eb_requests_ticket(key);                                                       \
    if (span.thread && status == MPI_STATUS_IGNORE) status = &own;                                          \
    const int rc = EB_NEXT(name)(buf, count, type, message, status);                                        \
    if (eb_span_returned(&span, rc)) {                                                                      \
      const eb_request probed = take(key, ticket);                                                          \
      span.request = probed.serial;                                                                         \
      eb_received(&span, eb_call_number(&name##_call), rc, probed.communicator, status);                    \
      eb_span_end(&span);                                                                                   \
    }                                                                                                       \
    return rc;                                                                                              \
  }
#define NON_BLOCKING(name, COUNT)                                                                                             \
  EB_CALL_OF(EB_CALL_PART, name);                                                                                             \
  EB_EXPORT int name(void *buf, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request) {                 \
    eb_span span = eb_span_begin(&name##_call);                                                                               \
    const uint64_t key = eb_message_key(*message);                                                                            \
    const eb_ticket ticket = eb_requests_ticket(key);                                                                         \
    const int source = *message == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : MPI_ANY_SOURCE;                                      \
    const int rc = EB_NEXT(name)(buf, count, type, message, request);                                                         \
    if (eb_span_returned(&span, rc)) {                                                                                        \
      const eb_request probed = take(key, ticket);                                                                            \
      eb_receive_created(&span, eb_call_number(&name##_call), rc, probed.communicator, source, EB_TAG_NONE, EB_BYTES_UNKNOWN, \
                         EB_REQUEST_RECEIVE, probed.serial, request);                                                         \
      eb_span_end(&span);                                                                                                     \
    }                                                                                                                         \
    return rc;                                                                                                                \
  }

BLOCKING(MPI_Mrecv, int)
NON_BLOCKING(MPI_Imrecv, int)
EB_LARGE(BLOCKING(MPI_Mrecv_c, MPI_Count))
EB_LARGE(NON_BLOCKING(MPI_Imrecv_c, MPI_Count))
