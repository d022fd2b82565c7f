/* MPI_Start, MPI_Startall, MPI_Request_free, MPI_Cancel, MPI_Grequest_start. */
#include "recorder/calls/quick.h"
#include "recorder/calls/wrap.h"
#include "recorder/recording/persistent.h"

/* For the next start. Of a receive of any source or tag its status says more. */
static void remember(MPI_Request request, eb_awaited_kind kind, const eb_request *known) {
  const bool receives = kind == EB_AWAITED_RECEIVE;
  const int tag = receives ? known->posted_tag : known->tag;
  if (known->peer != EB_PEER_NULL && (known->peer < 0 || tag < 0)) return;
  const eb_awaited_request started = {
      .bytes = receives ? known->posted_bytes : known->bytes,
      .call = known->call,
      .communicator = eb_number_of(known->communicator),
      .peer = known->peer,
      .tag = tag,
      .kind = (uint16_t)(known->peer == EB_PEER_NULL ? EB_AWAITED_NOTHING : kind),
      .thread = UINT16_MAX,
  };
  eb_awaited_remember(eb_request_key(request), &started);
}

/* Those of persistent collectives are posted where they are counted. */
static void posted(const eb_span *span, MPI_Request request, const eb_request *known) {
  const bool receives = known->kind == EB_REQUEST_PERSISTENT_RECEIVE;
  const eb_awaited_kind kind = known->kind == EB_REQUEST_PERSISTENT_SEND       ? EB_AWAITED_SEND
                               : receives                                      ? EB_AWAITED_RECEIVE
                               : known->kind == EB_REQUEST_PARTITIONED_SEND    ? EB_AWAITED_PARTITIONED_SEND
                               : known->kind == EB_REQUEST_PARTITIONED_RECEIVE ? EB_AWAITED_PARTITIONED_RECEIVE
                                                                               : 0;
  if (kind == 0) return;
  if (eb_recorder_is_quick && (kind == EB_AWAITED_SEND || kind == EB_AWAITED_RECEIVE)) remember(request, kind, known);
  eb_span_posts(span, request, kind, known->call, known->communicator, known->peer, receives ? known->posted_tag : known->tag,
                receives ? known->posted_bytes : known->bytes, known->partitions);
}

/* Looked up before the call: a started request can complete and be freed by another thread at once. The message of a send
 * is counted even if the start fails, which ends most programs. */
static void started(const eb_span *span, const MPI_Request *request) {
  eb_request known;
  if (!eb_requests_start(eb_request_key(*request), span->begin_ticks, &known)) return;
  eb_span_started(span);
  eb_span_of_request(span, known.serial, 0);
  if (eb_request_receives(&known)) eb_span_trace_start(span, &known);
  if (known.kind == EB_REQUEST_PERSISTENT_SEND)
    eb_add_message(span, known.call, EB_ROLE_SENT, known.communicator, known.peer, known.tag, known.bytes);
  if (known.kind == EB_REQUEST_PARTITIONED_SEND) eb_add_partitioned(span, EB_ROLE_SENT, &known);
  if (known.kind == EB_REQUEST_COLLECTIVE) eb_persistent_started(span, *request, &known);
  eb_span_of_none(span);
  posted(span, *request, &known);
}

/* False: not quick. */
EB_QUICK bool start_all(eb_thread *thread, eb_caller caller, const eb_call *call, int count, const MPI_Request *requests) {
  if (!thread) return false;
  for (int r = 0; r < count; r++)
    if (!eb_quick_is_started(eb_request_key(requests[r]))) return false;
  const uint64_t now_ns = eb_quick_now(thread);
  if (now_ns == 0) return false;
  const uint64_t turn = eb_quick_enter(thread, caller, call, now_ns);
  thread->open->communicator = 0;
  thread->open->bytes = EB_BYTES_UNKNOWN;
  eb_quick_about_none(thread->open);
  thread->awaited->number = 0;
  eb_quick_entered(thread, turn);
  for (int r = 0; r < count; r++) eb_quick_start(thread, eb_request_key(requests[r]));
  return true;
}
#define QUICKLY(name, count, requests, ARGUMENTS)                \
  eb_thread *const quick = eb_quick_thread(caller);              \
  if (start_all(quick, caller, &name##_call, count, requests)) { \
    const int rc = EB_NEXT(name) ARGUMENTS;                      \
    eb_quick_leave(quick, 0);                                    \
    return rc;                                                   \
  }

EB_CALL_OF(EB_CALL_OPEN, MPI_Start);
EB_QUICK_WAY(MPI_Start, (MPI_Request * request), (request), QUICKLY(MPI_Start, 1, request, (request))) {
  eb_span span = eb_span_open_of(&MPI_Start_call, caller);
  eb_span_wait(&span);
  uint64_t own_ticks = 0;
  if (span.thread) {
    started(&span, request);
    if (eb_recorder_counts()) own_ticks = eb_recorder_ticks() - span.begin_ticks;
  }
  const int rc = EB_NEXT(MPI_Start)(request);
  if (eb_span_returned(&span, rc)) {
    span.ticks -= own_ticks;
    eb_add_call(&span, eb_call_number(&MPI_Start_call), NULL, EB_PEER_NONE, 0);
    eb_span_end(&span);
  }
  return rc;
}

EB_CALL_OF(EB_CALL_OPEN, MPI_Startall);
EB_QUICK_WAY(MPI_Startall, (int count, MPI_Request requests[]), (count, requests),
             QUICKLY(MPI_Startall, count, requests, (count, requests))) {
  eb_span span = eb_span_open_of(&MPI_Startall_call, caller);
  eb_span_wait(&span);
  uint64_t own_ticks = 0;
  if (span.thread) {
    for (int r = 0; r < count; r++) started(&span, &requests[r]);
    if (eb_recorder_counts()) own_ticks = eb_recorder_ticks() - span.begin_ticks;
  }
  const int rc = EB_NEXT(MPI_Startall)(count, requests);
  if (eb_span_returned(&span, rc)) {
    span.ticks -= own_ticks;
    eb_add_call(&span, eb_call_number(&MPI_Startall_call), NULL, EB_PEER_NONE, 0);
    eb_span_end(&span);
  }
  return rc;
}

/* A receive that MPI_Request_get_status has seen complete is freed without a wait. One that is still active is forgotten:
 * nothing reports its size any more. What is not known is a send, or of a collective, whose status changes nothing: or it is no
 * request at all, and the error is that of the program's own call. Return how many that were open are closed with it. */
static uint32_t count_before_free(const eb_span *span, MPI_Request request) {
  MPI_Status status;
  eb_request known;
  int is_complete = 0;
  const uint64_t key = eb_request_key(request);
  if (!eb_awaited_knows(key) && !eb_requests_know(key)) {
    eb_awaited_forget(key);
    return 1;
  }
  if (PMPI_Request_get_status(request, &is_complete, &status) != MPI_SUCCESS) return 0;
  bool was_open = is_complete && eb_request_completed(span, key, eb_requests_ticket(key), true, &status);
  (void)eb_awaited_complete(key, &(eb_awaited_request){0});
  if (eb_requests_remove(key, is_complete, &known)) {
    was_open = was_open || known.is_active;
    if (known.kind == EB_REQUEST_COLLECTIVE) eb_persistent_free(known.persistent);
  } else if (!is_complete) {
    was_open = true;
  }
  return was_open;
}

EB_CALL(MPI_Request_free);
EB_EXPORT int MPI_Request_free(MPI_Request *request) {
  eb_span span = eb_span_begin(&MPI_Request_free_call);
  uint64_t own_ticks = 0;
  uint32_t num_closed = 0;
  if (span.thread) {
    if (eb_span_may_complete(&span) && *request != MPI_REQUEST_NULL) num_closed = count_before_free(&span, *request);
    if (eb_recorder_counts()) own_ticks = eb_recorder_ticks() - span.begin_ticks;
  }
  const int rc = EB_NEXT(MPI_Request_free)(request);
  if (eb_span_returned(&span, rc)) {
    if (rc == MPI_SUCCESS) eb_span_closed(&span, num_closed);
    span.ticks -= own_ticks;
    eb_add_call(&span, eb_call_number(&MPI_Request_free_call), NULL, EB_PEER_NONE, 0);
    eb_span_end(&span);
  }
  return rc;
}

EB_CALL_OF(EB_CALL_PART, MPI_Cancel);
EB_EXPORT int MPI_Cancel(MPI_Request *request) {
  eb_span span = eb_span_begin(&MPI_Cancel_call);
  eb_is_any_cancelled = true;
  eb_recorder_is_quick = false; /* receives may complete without a message */
  const int rc = EB_NEXT(MPI_Cancel)(request);
  if (eb_span_returned(&span, rc)) {
    eb_add_call(&span, eb_call_number(&MPI_Cancel_call), NULL, EB_PEER_NONE, 0);
    eb_span_end(&span);
  }
  return rc;
}

EB_WRAP_OPEN(MPI_Grequest_start,
             (MPI_Grequest_query_function * query_fn, MPI_Grequest_free_function *free_fn, MPI_Grequest_cancel_function *cancel_fn,
              void *extra_state, MPI_Request *request),
             (query_fn, free_fn, cancel_fn, extra_state, request), EB_OPENED(EB_ONLY_TIME))
