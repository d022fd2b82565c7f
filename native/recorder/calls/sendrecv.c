/* MPI_Sendrecv and its variants: a message each way. The time is counted with the call, not with either message. */
#include "recorder/calls/quick.h"
#include "recorder/calls/wrap.h"

static eb_communicator *half_sent(const eb_span *span, unsigned call, int rc, int64_t count, MPI_Datatype type, int dest, int tag,
                                  MPI_Comm comm) {
  eb_communicator *communicator = eb_span_communicator(span, comm);
  eb_add_call(span, call, communicator, EB_PEER_NONE, 0);
  if (rc == MPI_SUCCESS)
    eb_add_message(span, call, EB_ROLE_SENT, communicator, eb_world_rank(communicator, dest), tag, eb_bytes(span, count, type));
  return communicator;
}

static void exchanged(const eb_span *span, unsigned call, int rc, int64_t count, MPI_Datatype type, int dest, int tag,
                      MPI_Comm comm, const MPI_Status *status) {
  const eb_communicator *communicator = half_sent(span, call, rc, count, type, dest, tag, comm);
  if (rc != MPI_SUCCESS || status->MPI_SOURCE == MPI_PROC_NULL) return;
  eb_span_of_request(span, span->request, span->begin_ticks);
  eb_add_message(span, call, EB_ROLE_RECEIVED, communicator, eb_world_rank(communicator, status->MPI_SOURCE), status->MPI_TAG,
                 eb_status_bytes(status));
  eb_span_of_none(span);
}

#define QUICKLY(name, ARGUMENTS, recvcount, recvtype)                                                                       \
  eb_thread *const quick = eb_quick_exchange(caller, &name##_call, sendcount, sendtype, dest, sendtag, recvcount, recvtype, \
                                             source, recvtag, comm);                                                        \
  if (quick) {                                                                                                              \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                                                 \
    if (rc == MPI_SUCCESS) eb_quick_count_both(quick);                                                                      \
    eb_quick_leave(quick, 0);                                                                                               \
    return rc;                                                                                                              \
  }
#define BOTH(name, PARAMETERS, ARGUMENTS, recvcount, recvtype)                                              \
  EB_CALL_OF(EB_CALL_PART, name);                                                                           \
  EB_QUICK_WAY(name, PARAMETERS, ARGUMENTS, QUICKLY(name, ARGUMENTS, recvcount, recvtype)) {                \
    MPI_Status own;                                                                                         \
    eb_span span = eb_span_open_of(&name##_call, caller);                                                   \
    eb_span_also_sends(&span, dest, sendtag, comm, eb_known_bytes(&span, sendcount, sendtype));             \
    eb_span_about(&span, source, recvtag, comm, eb_known_bytes(&span, recvcount, recvtype));                \
    eb_span_wait(&span);                                                                                    \
    eb_span_receives(&span);                                                                                \
    if (span.thread && status == MPI_STATUS_IGNORE) status = &own;                                          \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                                 \
    if (eb_span_returned(&span, rc)) {                                                                      \
      exchanged(&span, eb_call_number(&name##_call), rc, sendcount, sendtype, dest, sendtag, comm, status); \
      eb_span_end(&span);                                                                                   \
    }                                                                                                       \
    return rc;                                                                                              \
  }
#define SENDRECV(name, COUNT)                                                                                                 \
  BOTH(name,                                                                                                                  \
       (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, COUNT recvcount,   \
        MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status),                                   \
       (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status), recvcount, \
       recvtype)
#define REPLACE(name, COUNT)                                                                                              \
  BOTH(name,                                                                                                              \
       (void *buf, COUNT sendcount, MPI_Datatype sendtype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, \
        MPI_Status *status),                                                                                              \
       (buf, sendcount, sendtype, dest, sendtag, source, recvtag, comm, status), sendcount, sendtype)

SENDRECV(MPI_Sendrecv, int)
REPLACE(MPI_Sendrecv_replace, int)
EB_LARGE(SENDRECV(MPI_Sendrecv_c, MPI_Count))
EB_LARGE(REPLACE(MPI_Sendrecv_replace_c, MPI_Count))

#ifdef EB_HAS_ISENDRECV
/* MPICH 5.0.2 and Intel MPI 2021.18 leave in the status of these requests whatever was in their memory: there the received
 * message has the size of the buffer, and one of any source has no peer. */
#ifdef OPEN_MPI
#define RECEIVE EB_REQUEST_RECEIVE
#else
#define RECEIVE EB_REQUEST_RECEIVE_NO_STATUS
#endif

static void begun(const eb_span *span, unsigned call, int rc, int64_t sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                  int64_t recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, const MPI_Request *request) {
  const bool receives = rc == MPI_SUCCESS && source != MPI_PROC_NULL;
  const uint32_t serial = receives ? eb_trace_post() : 0;
  if (rc == MPI_SUCCESS && !receives) eb_span_opens(span);
  else eb_span_of_request(span, serial, 0);
  eb_communicator *communicator = half_sent(span, call, rc, sendcount, sendtype, dest, sendtag, comm);
  eb_span_of_none(span);
  if (rc != MPI_SUCCESS) return;
  if (!receives) {
    eb_span_opened(span, request);
    return;
  }
  eb_span_started(span);
  const eb_request receive = {.kind = RECEIVE,
                              .call = call,
                              .communicator = communicator,
                              .peer = eb_world_rank(communicator, source),
                              .tag = recvtag,
                              .serial = serial,
                              .is_active = true,
                              .posted_ticks = span->begin_ticks,
                              .bytes = eb_bytes(span, recvcount, recvtype)};
  const bool has_status = RECEIVE != EB_REQUEST_RECEIVE_NO_STATUS;
  eb_span_posts(span, *request, EB_AWAITED_RECEIVE, call, communicator, receive.peer, recvtag, receive.bytes,
                has_status ? 0 : EB_AWAITED_NO_STATUS);
  if (eb_recorder_counts()) eb_requests_add(eb_request_key(*request), &receive);
  if (!has_status && (receive.peer < 0 || recvtag < 0)) eb_awaited_lose();
}

#define ISENDRECV(name, COUNT)                                                                                              \
  EB_WRAP_OPEN(name,                                                                                                        \
               (const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,          \
                COUNT recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request *request),      \
               (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, request), \
               begun(&span, call, rc, sendcount, sendtype, dest, sendtag, recvcount, recvtype, source, recvtag, comm, request))
#define IREPLACE(name, COUNT)                                                                                                     \
  EB_WRAP_OPEN(name,                                                                                                              \
               (void *buf, COUNT sendcount, MPI_Datatype sendtype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, \
                MPI_Request *request),                                                                                            \
               (buf, sendcount, sendtype, dest, sendtag, source, recvtag, comm, request),                                         \
               begun(&span, call, rc, sendcount, sendtype, dest, sendtag, sendcount, sendtype, source, recvtag, comm, request))

ISENDRECV(MPI_Isendrecv, int)
IREPLACE(MPI_Isendrecv_replace, int)
EB_LARGE(ISENDRECV(MPI_Isendrecv_c, MPI_Count))
EB_LARGE(IREPLACE(MPI_Isendrecv_replace_c, MPI_Count))
#endif
