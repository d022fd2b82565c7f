/* MPI_Wait, MPI_Test and their variants: their time, and the messages of the receives that they complete.
 *
 * The calls reset the handles, so those are copied before; statuses of our own replace the ones that the program ignores.
 */
#include <string.h>

#include "recorder/calls/wrap.h"

/* Before the call: handles, and statuses where they are needed. */
typedef struct {
  const MPI_Request *handles; /* NULL: nothing can be completed that is counted */
  MPI_Status *statuses;       /* those to be passed on */
  bool has_statuses;
} copies;

/* Could a call complete anything that this thread or another one has started? */
static bool may_complete(const eb_span *span) { return span->thread && (span->thread->epoch.num_open > 0 || eb_requests_any()); }

static copies copy(const eb_span *span, int count, const MPI_Request *requests, MPI_Status *statuses) {
  copies made = {NULL, statuses, statuses != MPI_STATUSES_IGNORE};
  if (!may_complete(span) || count <= 0) return made;
  const bool are_needed = !made.has_statuses && eb_requests_any();
  const size_t handle_bytes = ((size_t)count * sizeof *requests + 15) / 16 * 16;
  char *scratch = eb_thread_scratch(span->thread, handle_bytes + (are_needed ? (size_t)count * sizeof *statuses : 0));
  if (!scratch) return made;
  memcpy(scratch, requests, (size_t)count * sizeof *requests);
  made.handles = (const MPI_Request *)scratch;
  if (are_needed) made.statuses = (MPI_Status *)(scratch + handle_bytes);
  made.has_statuses = made.has_statuses || are_needed;
  return made;
}

/* A handle before and after a call that has completed it: 1 if it had been started. */
static uint32_t completed(const eb_span *span, MPI_Request before, MPI_Request after, const MPI_Status *status) {
  if (before == MPI_REQUEST_NULL) return 0;
  return eb_request_completed(span, eb_request_key(before), after == MPI_REQUEST_NULL, status);
}

/* The wrapper of a call: what follows where it has completed something. */
#define ONE(name, PARAMETERS, ARGUMENTS, IS_COMPLETED)                                                                         \
  EB_CALL_OF(EB_CALL_PART, name);                                                                                              \
  EB_EXPORT int name PARAMETERS {                                                                                              \
    MPI_Status own;                                                                                                            \
    eb_span span = eb_span_begin(&name##_call);                                                                                \
    const MPI_Request handle = *request;                                                                                       \
    const bool may_count = may_complete(&span);                                                                                \
    if (may_count && status == MPI_STATUS_IGNORE) status = &own;                                                               \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                                                    \
    if (eb_span_returned(&span, rc)) {                                                                                         \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                                                 \
      if (may_count && rc == MPI_SUCCESS && (IS_COMPLETED)) eb_span_closed(&span, completed(&span, handle, *request, status)); \
      eb_span_end(&span);                                                                                                      \
    }                                                                                                                          \
    return rc;                                                                                                                 \
  }

ONE(MPI_Wait, (MPI_Request * request, MPI_Status *status), (request, status), true)
ONE(MPI_Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), *flag)

/* Those that complete all, or none. */
#define ALL(name, PARAMETERS, ARGUMENTS, IS_COMPLETED)                                                      \
  EB_CALL_OF(EB_CALL_PART, name);                                                                           \
  EB_EXPORT int name PARAMETERS {                                                                           \
    eb_span span = eb_span_begin(&name##_call);                                                             \
    const copies before = copy(&span, count, requests, statuses);                                           \
    statuses = before.statuses;                                                                             \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                                 \
    if (eb_span_returned(&span, rc)) {                                                                      \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                              \
      uint32_t num = 0;                                                                                     \
      for (int r = 0; before.handles && rc == MPI_SUCCESS && (IS_COMPLETED) && r < count; r++)              \
        num += completed(&span, before.handles[r], requests[r], before.has_statuses ? &statuses[r] : NULL); \
      eb_span_closed(&span, num);                                                                           \
      eb_span_end(&span);                                                                                   \
    }                                                                                                       \
    return rc;                                                                                              \
  }

ALL(MPI_Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses), true)
ALL(MPI_Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]), (count, requests, flag, statuses), *flag)

/* Those that complete one of several. */
#define ANY(name, PARAMETERS, ARGUMENTS, IS_COMPLETED)                                             \
  EB_CALL_OF(EB_CALL_PART, name);                                                                  \
  EB_EXPORT int name PARAMETERS {                                                                  \
    MPI_Status own;                                                                                \
    eb_span span = eb_span_begin(&name##_call);                                                    \
    const copies before = copy(&span, count, requests, &own);                                      \
    if (before.handles && status == MPI_STATUS_IGNORE) status = &own;                              \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                        \
    if (eb_span_returned(&span, rc)) {                                                             \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                     \
      if (before.handles && rc == MPI_SUCCESS && (IS_COMPLETED) && *index != MPI_UNDEFINED)        \
        eb_span_closed(&span, completed(&span, before.handles[*index], requests[*index], status)); \
      eb_span_end(&span);                                                                          \
    }                                                                                              \
    return rc;                                                                                     \
  }

ANY(MPI_Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status), (count, requests, index, status), true)
ANY(MPI_Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
    (count, requests, index, flag, status), *flag)

/* Those that complete some: status s is that of the request indices[s]. */
#define SOME(name)                                                                                                            \
  EB_CALL_OF(EB_CALL_PART, name);                                                                                             \
  EB_EXPORT int name(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) {              \
    eb_span span = eb_span_begin(&name##_call);                                                                               \
    const copies before = copy(&span, incount, requests, statuses);                                                           \
    statuses = before.statuses;                                                                                               \
    const int rc = EB_NEXT(name)(incount, requests, outcount, indices, statuses);                                             \
    if (eb_span_returned(&span, rc)) {                                                                                        \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                                                \
      uint32_t num = 0;                                                                                                       \
      for (int s = 0; before.handles && rc == MPI_SUCCESS && *outcount != MPI_UNDEFINED && s < *outcount; s++)                \
        num += completed(&span, before.handles[indices[s]], requests[indices[s]], before.has_statuses ? &statuses[s] : NULL); \
      eb_span_closed(&span, num);                                                                                             \
      eb_span_end(&span);                                                                                                     \
    }                                                                                                                         \
    return rc;                                                                                                                \
  }

SOME(MPI_Waitsome)
SOME(MPI_Testsome)

/* It completes nothing: a wait or MPI_Request_free follows. */
EB_WRAP_PART(MPI_Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status), EB_ONLY_TIME)
