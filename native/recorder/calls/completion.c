/* MPI_Wait, MPI_Test and their variants: their time, and the messages of the receives that they complete.
 *
 * The calls reset the handles, so those are copied before; statuses of our own replace the ones that the program ignores.
 */
#include <string.h>

#include "recorder/calls/wrap.h"

/* Before the call: handles, and statuses where they are needed. */
typedef struct {
  const MPI_Request *handles; /* NULL: nothing can be completed that is counted */
  MPI_Status *statuses;
} copies;

static copies copy(const eb_span *span, int count, const MPI_Request *requests, MPI_Status *statuses) {
  copies made = {NULL, statuses};
  if (!span->thread || count <= 0 || !eb_requests_any()) return made;
  const bool is_ignored = statuses == MPI_STATUSES_IGNORE;
  const size_t handle_bytes = ((size_t)count * sizeof *requests + 15) / 16 * 16;
  char *scratch = eb_thread_scratch(span->thread, handle_bytes + (is_ignored ? (size_t)count * sizeof *statuses : 0));
  if (!scratch) return made;
  memcpy(scratch, requests, (size_t)count * sizeof *requests);
  made.handles = (const MPI_Request *)scratch;
  if (is_ignored) made.statuses = (MPI_Status *)(scratch + handle_bytes);
  return made;
}

static void completed(const eb_span *span, MPI_Request handle, const MPI_Status *status) {
  if (handle != MPI_REQUEST_NULL) eb_request_completed(span, eb_request_key(handle), status);
}

/* The wrapper of a call: COUNTED where it has completed something. */
#define ONE(name, PARAMETERS, ARGUMENTS, IS_COMPLETED)                                        \
  EB_CALL(name);                                                                              \
  EB_EXPORT int name PARAMETERS {                                                             \
    MPI_Status own;                                                                           \
    eb_span span = eb_span_begin();                                                           \
    const MPI_Request handle = *request;                                                      \
    const bool may_count = span.thread && eb_requests_any();                                  \
    if (may_count && status == MPI_STATUS_IGNORE) status = &own;                              \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                   \
    if (eb_span_returned(&span, rc)) {                                                        \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                \
      if (may_count && rc == MPI_SUCCESS && (IS_COMPLETED)) completed(&span, handle, status); \
      eb_span_end(&span);                                                                     \
    }                                                                                         \
    return rc;                                                                                \
  }

ONE(MPI_Wait, (MPI_Request * request, MPI_Status *status), (request, status), true)
ONE(MPI_Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status), *flag)

/* Those that complete all, or none. */
#define ALL(name, PARAMETERS, ARGUMENTS, IS_COMPLETED)                                         \
  EB_CALL(name);                                                                               \
  EB_EXPORT int name PARAMETERS {                                                              \
    eb_span span = eb_span_begin();                                                            \
    const copies before = copy(&span, count, requests, statuses);                              \
    statuses = before.statuses;                                                                \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                    \
    if (eb_span_returned(&span, rc)) {                                                         \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                 \
      for (int r = 0; before.handles && rc == MPI_SUCCESS && (IS_COMPLETED) && r < count; r++) \
        completed(&span, before.handles[r], &statuses[r]);                                     \
      eb_span_end(&span);                                                                      \
    }                                                                                          \
    return rc;                                                                                 \
  }

ALL(MPI_Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]), (count, requests, statuses), true)
ALL(MPI_Testall, (int count, MPI_Request requests[], int *flag, MPI_Status statuses[]), (count, requests, flag, statuses), *flag)

/* Those that complete one of several. */
#define ANY(name, PARAMETERS, ARGUMENTS, IS_COMPLETED)                                      \
  EB_CALL(name);                                                                            \
  EB_EXPORT int name PARAMETERS {                                                           \
    MPI_Status own;                                                                         \
    eb_span span = eb_span_begin();                                                         \
    const copies before = copy(&span, count, requests, &own);                               \
    if (before.handles && status == MPI_STATUS_IGNORE) status = &own;                       \
    const int rc = EB_NEXT(name) ARGUMENTS;                                                 \
    if (eb_span_returned(&span, rc)) {                                                      \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);              \
      if (before.handles && rc == MPI_SUCCESS && (IS_COMPLETED) && *index != MPI_UNDEFINED) \
        completed(&span, before.handles[*index], status);                                   \
      eb_span_end(&span);                                                                   \
    }                                                                                       \
    return rc;                                                                              \
  }

ANY(MPI_Waitany, (int count, MPI_Request requests[], int *index, MPI_Status *status), (count, requests, index, status), true)
ANY(MPI_Testany, (int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status),
    (count, requests, index, flag, status), *flag)

/* Those that complete some: status s is that of the request indices[s]. */
#define SOME(name)                                                                                               \
  EB_CALL(name);                                                                                                 \
  EB_EXPORT int name(int incount, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]) { \
    eb_span span = eb_span_begin();                                                                              \
    const copies before = copy(&span, incount, requests, statuses);                                              \
    statuses = before.statuses;                                                                                  \
    const int rc = EB_NEXT(name)(incount, requests, outcount, indices, statuses);                                \
    if (eb_span_returned(&span, rc)) {                                                                           \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0);                                   \
      for (int s = 0; before.handles && rc == MPI_SUCCESS && *outcount != MPI_UNDEFINED && s < *outcount; s++)   \
        completed(&span, before.handles[indices[s]], &statuses[s]);                                              \
      eb_span_end(&span);                                                                                        \
    }                                                                                                            \
    return rc;                                                                                                   \
  }

SOME(MPI_Waitsome)
SOME(MPI_Testsome)

/* It completes nothing: a wait or MPI_Request_free follows. */
EB_WRAP(MPI_Request_get_status, (MPI_Request request, int *flag, MPI_Status *status), (request, flag, status), EB_ONLY_TIME)
