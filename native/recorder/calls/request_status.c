/* MPI_Request_get_status_any and its variants complete nothing: only time. */
#include "recorder/calls/wrap.h"

#ifdef EB_HAS_REQUEST_GET_STATUS_ALL
/* Under names of our own, because headers differ in a const of the requests. */
#define ONLY_TIME(name, own_name, PARAMETERS, ARGUMENTS)                     \
  EB_CALL_OF(EB_CALL_POLL, name);                                            \
  EB_EXPORT int own_name PARAMETERS __asm__(#name);                          \
  EB_EXPORT int own_name PARAMETERS {                                        \
    eb_span span = eb_span_begin(&name##_call);                              \
    const int rc = ((int(*) PARAMETERS)eb_call_next(&name##_call))ARGUMENTS; \
    if (eb_span_returned(&span, rc)) {                                       \
      const unsigned call = eb_call_number(&name##_call);                    \
      EB_ONLY_TIME;                                                          \
      eb_span_end(&span);                                                    \
    }                                                                        \
    return rc;                                                               \
  }

ONLY_TIME(MPI_Request_get_status_all, eb_recorded_get_status_all,
          (int count, const MPI_Request *requests, int *flag, MPI_Status *statuses), (count, requests, flag, statuses))
ONLY_TIME(MPI_Request_get_status_any, eb_recorded_get_status_any,
          (int count, const MPI_Request *requests, int *index, int *flag, MPI_Status *status),
          (count, requests, index, flag, status))
ONLY_TIME(MPI_Request_get_status_some, eb_recorded_get_status_some,
          (int incount, const MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses),
          (incount, requests, outcount, indices, statuses))
#endif
