/* MPI_Send and the calls like it: blocking, non-blocking, persistent. */
#include "recorder/calls/quick.h"
#include "recorder/calls/wrap.h"

static void sent(const eb_span *span, unsigned call, int rc, int64_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  if (eb_span_is_message(span, EB_ROLE_SENT)) return;
  const eb_communicator *communicator = eb_span_communicator(span, comm);
  if (rc != MPI_SUCCESS) eb_add_call(span, call, communicator, EB_PEER_NONE, 0);
  else
    eb_add_call_message(span, call, EB_ROLE_SENT, communicator, eb_world_rank(communicator, dest), tag,
                        eb_bytes(span, count, type));
}

static void posted(const eb_span *span, unsigned call, int rc, int64_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   const MPI_Request *request) {
  const eb_communicator *communicator = eb_span_communicator(span, comm);
  if (rc != MPI_SUCCESS) return;
  eb_span_posts(span, *request, EB_AWAITED_SEND, call, communicator, eb_world_rank(communicator, dest), tag,
                eb_bytes(span, count, type), 0);
}

/* The messages are counted at every start. */
static void created(const eb_span *span, unsigned call, int rc, int64_t count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                    const MPI_Request *request) {
  eb_communicator *communicator = eb_span_communicator(span, comm);
  const int peer = rc == MPI_SUCCESS ? eb_world_rank(communicator, dest) : EB_PEER_NONE;
  eb_add_call(span, call, communicator, peer, 0);
  if (rc != MPI_SUCCESS) return;
  const eb_request persistent = {.kind = EB_REQUEST_PERSISTENT_SEND,
                                 .call = call,
                                 .communicator = communicator,
                                 .peer = peer,
                                 .tag = tag,
                                 .bytes = eb_bytes(span, count, type)};
  eb_requests_add(eb_request_key(*request), &persistent);
}

/* `earlybird record --synchronous`: a standard send completes only when it is received, as one that the MPI does not buffer. */
#define STANDARD(name, synchronous) (__builtin_expect(eb_sends_are_synchronous, 0) ? EB_NEXT(synchronous) : EB_NEXT(name))

#define QUICKLY(name, CALL, POSTED)                                                                  \
  eb_thread *const quick = eb_quick_message(caller, &name##_call, count, datatype, dest, tag, comm); \
  if (quick) {                                                                                       \
    const int rc = CALL;                                                                             \
    if (rc == MPI_SUCCESS) {                                                                         \
      eb_quick_count(quick, true);                                                                   \
      POSTED;                                                                                        \
    }                                                                                                \
    eb_quick_leave(quick, 0);                                                                        \
    return rc;                                                                                       \
  }
#define BLOCKING(name, NEXT, COUNT)                                                                                                \
  EB_WRAP_QUICK(EB_CALL_PART, name, NEXT, (const void *buf, COUNT count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm), \
                (buf, count, datatype, dest, tag, comm), QUICKLY(name, (NEXT)(buf, count, datatype, dest, tag, comm), ),           \
                eb_span_about(&span, dest, tag, comm, eb_known_bytes(&span, count, datatype)),                                     \
                sent(&span, call, rc, count, datatype, dest, tag, comm))
#define NON_BLOCKING(name, NEXT, COUNT)                                                                                        \
  EB_WRAP_QUICK(EB_CALL_OPEN, name, NEXT,                                                                                      \
                (const void *buf, COUNT count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
                (buf, count, datatype, dest, tag, comm, request),                                                              \
                QUICKLY(name, (NEXT)(buf, count, datatype, dest, tag, comm, request),                                          \
                        eb_quick_post(quick, *request, EB_AWAITED_SEND)),                                                      \
                , EB_OPENED(sent(&span, call, rc, count, datatype, dest, tag, comm));                                          \
                posted(&span, call, rc, count, datatype, dest, tag, comm, request))
#define PERSISTENT(name, NEXT, COUNT)                                                                                         \
  EB_WRAP_NEXT(EB_CALL_ALONE, name, NEXT,                                                                                     \
               (const void *buf, COUNT count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request), \
               (buf, count, datatype, dest, tag, comm, request), ,                                                            \
               created(&span, call, rc, count, datatype, dest, tag, comm, request))

/* The synchronous ones first, because the standard ones may call them. */
BLOCKING(MPI_Ssend, EB_NEXT(MPI_Ssend), int)
BLOCKING(MPI_Send, STANDARD(MPI_Send, MPI_Ssend), int)
BLOCKING(MPI_Bsend, EB_NEXT(MPI_Bsend), int)
BLOCKING(MPI_Rsend, EB_NEXT(MPI_Rsend), int)
NON_BLOCKING(MPI_Issend, EB_NEXT(MPI_Issend), int)
NON_BLOCKING(MPI_Isend, STANDARD(MPI_Isend, MPI_Issend), int)
NON_BLOCKING(MPI_Ibsend, EB_NEXT(MPI_Ibsend), int)
NON_BLOCKING(MPI_Irsend, EB_NEXT(MPI_Irsend), int)
PERSISTENT(MPI_Ssend_init, EB_NEXT(MPI_Ssend_init), int)
PERSISTENT(MPI_Send_init, STANDARD(MPI_Send_init, MPI_Ssend_init), int)
PERSISTENT(MPI_Bsend_init, EB_NEXT(MPI_Bsend_init), int)
PERSISTENT(MPI_Rsend_init, EB_NEXT(MPI_Rsend_init), int)
EB_LARGE(BLOCKING(MPI_Ssend_c, EB_NEXT(MPI_Ssend_c), MPI_Count))
EB_LARGE(BLOCKING(MPI_Send_c, STANDARD(MPI_Send_c, MPI_Ssend_c), MPI_Count))
EB_LARGE(BLOCKING(MPI_Bsend_c, EB_NEXT(MPI_Bsend_c), MPI_Count))
EB_LARGE(BLOCKING(MPI_Rsend_c, EB_NEXT(MPI_Rsend_c), MPI_Count))
EB_LARGE(NON_BLOCKING(MPI_Issend_c, EB_NEXT(MPI_Issend_c), MPI_Count))
EB_LARGE(NON_BLOCKING(MPI_Isend_c, STANDARD(MPI_Isend_c, MPI_Issend_c), MPI_Count))
EB_LARGE(NON_BLOCKING(MPI_Ibsend_c, EB_NEXT(MPI_Ibsend_c), MPI_Count))
EB_LARGE(NON_BLOCKING(MPI_Irsend_c, EB_NEXT(MPI_Irsend_c), MPI_Count))
EB_LARGE(PERSISTENT(MPI_Ssend_init_c, EB_NEXT(MPI_Ssend_init_c), MPI_Count))
EB_LARGE(PERSISTENT(MPI_Send_init_c, STANDARD(MPI_Send_init_c, MPI_Ssend_init_c), MPI_Count))
EB_LARGE(PERSISTENT(MPI_Bsend_init_c, EB_NEXT(MPI_Bsend_init_c), MPI_Count))
EB_LARGE(PERSISTENT(MPI_Rsend_init_c, EB_NEXT(MPI_Rsend_init_c), MPI_Count))
