/* MPI_Wait, MPI_Test and their variants: their time, and the messages of the receives that they complete.
 *
 * The calls reset the handles, so those are copied before; statuses of our own replace the ones that the program ignores.
 */
#include "recorder/calls/quick.h"
#include "recorder/calls/wrap.h"

/* A request before the call. */
typedef struct {
  MPI_Request handle;
  eb_ticket ticket;
} copied;

/* Before the call: requests, and statuses where they are needed. */
typedef struct {
  const copied *requests; /* NULL: nothing can be completed that is counted */
  MPI_Status *statuses;   /* those to be passed on */
  bool has_statuses;
} copies;

static copied copy_one(MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL) return (copied){handle, EB_TICKET_NONE};
  return (copied){handle, eb_recorder_counts() ? eb_requests_ticket(eb_request_key(handle)) : EB_TICKET_ONLY};
}

/* Whoever polls may do something else if nothing is complete. */
static void wait_for(const eb_span *span, MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL || eb_calls_begin[span->thread->epoch.present.call].kind == EB_CALL_POLL) return;
  eb_awaited_mark(eb_request_key(handle), span->thread->number);
}

static copies copy(const eb_span *span, int count, const MPI_Request *requests, MPI_Status *statuses) {
  copies made = {NULL, statuses, statuses != MPI_STATUSES_IGNORE};
  if (!eb_span_may_complete(span) || count <= 0) return made;
  const bool are_needed = !made.has_statuses &&
                          (eb_requests_any() || __atomic_load_n(&eb_awaited_num_wild, __ATOMIC_RELAXED) != 0 ||
                           eb_is_any_cancelled);
  const size_t copied_bytes = ((size_t)count * sizeof(copied) + 15) / 16 * 16;
  char *scratch = eb_thread_scratch(span->thread, copied_bytes + (are_needed ? (size_t)count * sizeof *statuses : 0));
  if (!scratch) return made;
  copied *const of_requests = (copied *)scratch;
  for (int r = 0; r < count; r++) {
    of_requests[r] = copy_one(requests[r]);
    wait_for(span, requests[r]);
  }
  made.requests = of_requests;
  if (are_needed) made.statuses = (MPI_Status *)(scratch + copied_bytes);
  made.has_statuses = made.has_statuses || are_needed;
  return made;
}

/* A request before a call that has completed it, and its handle after the call: 1 if it had been started. A call that has
 * failed has still ended the requests whose handles are null now. Only with MPI_ERR_IN_STATUS is it known which are good, and
 * which persistent ones are complete. */
static uint32_t completed(const eb_span *span, int rc, copied before, MPI_Request after, const MPI_Status *status) {
  if (before.handle == MPI_REQUEST_NULL) return 0;
  if (rc != MPI_SUCCESS && (rc != MPI_ERR_IN_STATUS || !status)) {
    if (after != MPI_REQUEST_NULL) return 0;
    status = NULL;
  } else if (rc != MPI_SUCCESS) {
    if (after != MPI_REQUEST_NULL && status->MPI_ERROR == MPI_ERR_PENDING) return 0;
    if (status->MPI_ERROR != MPI_SUCCESS) status = NULL;
  }
  return eb_request_completed(span, eb_request_key(before.handle), before.ticket, after == MPI_REQUEST_NULL, status);
}

/* The same for all requests of a call that has failed and completes one or some: `indices` and `statuses` are of the `num` that
 * the MPI names. */
static uint32_t completed_by_failed(const eb_span *span, int rc, int count, const copied before[], const MPI_Request after[],
                                    int num, const int indices[], const MPI_Status statuses[]) {
  uint32_t num_completed = 0;
  for (int r = 0; r < count; r++) {
    const MPI_Status *status = NULL;
    for (int s = 0; s < num; s++)
      if (indices[s] == r) status = &statuses[s];
    if (status || after[r] == MPI_REQUEST_NULL) num_completed += completed(span, rc, before[r], after[r], status);
  }
  return num_completed;
}

/* The wrapper of a call: what follows where it has completed something. */
#define ONE(kind, name, PARAMETERS, ARGUMENTS, IS_COMPLETED, QUICKLY)                                  \
  EB_CALL_OF(kind, name);                                                                              \
  EB_QUICK_WAY(name, PARAMETERS, ARGUMENTS, QUICKLY) {                                                 \
    MPI_Status own;                                                                                    \
    eb_span span = eb_span_open_of(&name##_call, caller);                                              \
    eb_span_wait(&span);                                                                               \
    const bool may_count = eb_span_may_complete(&span);                                                \
    const copied before = may_count ? copy_one(*request) : (copied){MPI_REQUEST_NULL, EB_TICKET_NONE}; \
    if (may_count && status == MPI_STATUS_IGNORE) status = &own;                                       \
    if (may_count) wait_for(&span, before.handle);                                                     \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                            \
    if (eb_span_returned(&span, rc)) {                                                                 \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                         \
      if (may_count && (rc != MPI_SUCCESS || (IS_COMPLETED)))                                          \
        eb_span_closed(&span, completed(&span, rc, before, *request, status));                         \
      eb_span_end(&span);                                                                              \
    }                                                                                                  \
    return rc;                                                                                         \
  }

#define EB_STATUS_OF(status) ((status) == MPI_STATUS_IGNORE ? NULL : (status))
#define TEST_QUICKLY                                                                              \
  eb_thread *const quick = eb_quick_thread(caller);                                               \
  uint16_t place;                                                                                 \
  if (quick && eb_quick_find(*request, &place) && eb_quick_poll(quick, caller, &MPI_Test_call)) { \
    const int rc = EB_NEXT(MPI_Test)(request, flag, status);                                      \
    const bool is = place != EB_QUICK_NO_PLACE && (rc != MPI_SUCCESS || *flag) &&                 \
                    eb_quick_is_complete(rc, *request, EB_STATUS_OF(status));                     \
    if (is) eb_quick_complete(place);                                                             \
    eb_quick_polled(quick, is);                                                                   \
    return rc;                                                                                    \
  }
#define WAIT_QUICKLY                                                                                          \
  eb_thread *const quick = eb_quick_thread(caller);                                                           \
  uint16_t place;                                                                                             \
  if (quick && eb_quick_mark(quick, *request, &place)) {                                                      \
    const uint64_t now_ns = eb_quick_now(quick);                                                              \
    if (now_ns) {                                                                                             \
      eb_quick_wait(quick, caller, &MPI_Wait_call, now_ns, 1);                                                \
      const int rc = EB_NEXT(MPI_Wait)(request, status);                                                      \
      const bool is = place != EB_QUICK_NO_PLACE && eb_quick_is_complete(rc, *request, EB_STATUS_OF(status)); \
      if (is) eb_quick_complete(place);                                                                       \
      eb_quick_leave(quick, is);                                                                              \
      return rc;                                                                                              \
    }                                                                                                         \
  }
ONE(EB_CALL_PART, MPI_Wait, (MPI_Request * request, MPI_Status *status), (request, status), true, WAIT_QUICKLY)
ONE(EB_CALL_POLL, MPI_Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), *flag, TEST_QUICKLY)

/* Those that complete all, or none. */
#define ALL(kind, name, PARAMETERS, ARGUMENTS, IS_COMPLETED, QUICKLY)                                            \
  EB_CALL_OF(kind, name);                                                                                        \
  EB_QUICK_WAY(name, PARAMETERS, ARGUMENTS, QUICKLY) {                                                           \
    eb_span span = eb_span_open_of(&name##_call, caller);                                                        \
    eb_span_wait(&span);                                                                                         \
    const copies before = copy(&span, count, requests, statuses);                                                \
    statuses = before.statuses;                                                                                  \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                                      \
    if (eb_span_returned(&span, rc)) {                                                                           \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                                   \
      uint32_t num = 0;                                                                                          \
      for (int r = 0; before.requests && (rc != MPI_SUCCESS || (IS_COMPLETED)) && r < count; r++)                \
        num += completed(&span, rc, before.requests[r], requests[r], before.has_statuses ? &statuses[r] : NULL); \
      eb_span_closed(&span, num);                                                                                \
      eb_span_end(&span);                                                                                        \
    }                                                                                                            \
    return rc;                                                                                                   \
  }

/* False: not quick. */
EB_QUICK bool mark_all(eb_thread *thread, int count, const MPI_Request *requests) {
  if (!thread || count > EB_AWAITED_REQUESTS) return false;
  for (int r = 0; r < count; r++)
    if (!eb_quick_mark(thread, requests[r], &thread->places[r])) return false;
  return true;
}

EB_QUICK uint32_t complete_all(const eb_thread *thread, int rc, int count, const MPI_Request *after, const MPI_Status *statuses) {
  uint32_t num = 0;
  for (int r = 0; r < count; r++) {
    if (thread->places[r] == EB_QUICK_NO_PLACE) continue;
    if (rc != MPI_SUCCESS && !eb_quick_is_complete(rc, after[r], statuses == MPI_STATUSES_IGNORE ? NULL : &statuses[r])) continue;
    eb_quick_complete(thread->places[r]);
    num++;
  }
  return num;
}

#define WAITALL_QUICKLY                                                                         \
  eb_thread *const quick = eb_quick_thread(caller);                                             \
  if (mark_all(quick, count, requests)) {                                                       \
    const uint64_t now_ns = eb_quick_now(quick);                                                \
    if (now_ns) {                                                                               \
      eb_quick_wait(quick, caller, &MPI_Waitall_call, now_ns, count > 0 ? (uint32_t)count : 0); \
      const int rc = EB_NEXT(MPI_Waitall)(count, requests, statuses);                           \
      eb_quick_leave(quick, complete_all(quick, rc, count, requests, statuses));                \
      return rc;                                                                                \
    }                                                                                           \
  }
ALL(EB_CALL_PART, MPI_Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses), true,
    WAITALL_QUICKLY)
ALL(EB_CALL_POLL, MPI_Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]),
    (count, requests, flag, statuses), *flag, )

/* Those that complete one of several. */
#define ANY(kind, name, PARAMETERS, ARGUMENTS, IS_COMPLETED)                                                    \
  EB_CALL_OF(kind, name);                                                                                       \
  EB_EXPORT int name PARAMETERS {                                                                               \
    MPI_Status own;                                                                                             \
    eb_span span = eb_span_begin(&name##_call);                                                                 \
    const copies before = copy(&span, count, requests, &own);                                                   \
    if (before.requests && status == MPI_STATUS_IGNORE) status = &own;                                          \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                                     \
    if (eb_span_returned(&span, rc)) {                                                                          \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                                  \
      if (before.requests && rc != MPI_SUCCESS)                                                                 \
        eb_span_closed(&span, completed_by_failed(&span, rc, count, before.requests, requests, 0, NULL, NULL)); \
      else if (before.requests && (IS_COMPLETED) && *index != MPI_UNDEFINED)                                    \
        eb_span_closed(&span, completed(&span, rc, before.requests[*index], requests[*index], status));         \
      eb_span_end(&span);                                                                                       \
    }                                                                                                           \
    return rc;                                                                                                  \
  }

ANY(EB_CALL_PART, MPI_Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status),
    (count, requests, index, status), true)
ANY(EB_CALL_POLL, MPI_Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
    (count, requests, index, flag, status), *flag)

/* Those that complete some: status s is that of the request indices[s]. */
#define SOME(kind, name)                                                                                                           \
  EB_CALL_OF(kind, name);                                                                                                          \
  EB_EXPORT int name(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) {                   \
    eb_span span = eb_span_begin(&name##_call);                                                                                    \
    const copies before = copy(&span, incount, requests, statuses);                                                                \
    statuses = before.statuses;                                                                                                    \
    const int rc = EB_NEXT(name)(incount, requests, outcount, indices, statuses);                                                  \
    if (eb_span_returned(&span, rc)) {                                                                                             \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                                                     \
      uint32_t num = 0;                                                                                                            \
      const int named = before.requests && *outcount != MPI_UNDEFINED && (rc == MPI_SUCCESS || rc == MPI_ERR_IN_STATUS)            \
                            ? *outcount                                                                                            \
                            : 0;                                                                                                   \
      if (before.requests && rc != MPI_SUCCESS)                                                                                    \
        num = completed_by_failed(&span, rc, incount, before.requests, requests, before.has_statuses ? named : 0, indices,         \
                                  statuses);                                                                                       \
      for (int s = 0; rc == MPI_SUCCESS && s < named; s++)                                                                         \
        num += completed(&span, rc, before.requests[indices[s]], requests[indices[s]], before.has_statuses ? &statuses[s] : NULL); \
      eb_span_closed(&span, num);                                                                                                  \
      eb_span_end(&span);                                                                                                          \
    }                                                                                                                              \
    return rc;                                                                                                                     \
  }

SOME(EB_CALL_PART, MPI_Waitsome)
SOME(EB_CALL_POLL, MPI_Testsome)

/* It completes nothing: a wait or MPI_Request_free follows. */
EB_WRAP_POLL(MPI_Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status), EB_ONLY_TIME)
