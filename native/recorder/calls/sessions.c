/* Sessions: outside of MPI_Init and MPI_Finalize nothing is recorded, which is said where a program has one there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "recorder/calls/wrap.h"

#ifdef EB_HAS_SESSIONS
/* The first process of those that share the folder prints it; `earlybird record` and `show` find the file. */
static void report(void) {
  char path[4096];
  const char *folder = getenv("EARLYBIRD_RECORD");
  if (eb_recorder_is_on || !folder || !*folder) return;
  const int length = snprintf(path, sizeof path, "%s/sessions", folder);
  const int file = length < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
  if (file < 0) return;
  close(file);
  fputs("earlybird: the program uses MPI sessions: what it sends outside of MPI_Init and MPI_Finalize is not recorded\n", stderr);
}

#define REPORTING(name, PARAMETERS, ARGUMENTS)                                 \
  EB_CALL(name);                                                               \
  EB_EXPORT int name PARAMETERS {                                              \
    eb_span span = eb_span_begin(&name##_call);                                \
    if (!span.thread) report();                                                \
    eb_recorder_expect_threads();                                              \
    const int rc = EB_NEXT(name) ARGUMENTS;                                    \
    if (eb_span_returned(&span, rc)) {                                         \
      eb_add_call(&span, eb_call_number(&name##_call), NULL, EB_PEER_NONE, 0); \
      eb_span_end(&span);                                                      \
    }                                                                          \
    return rc;                                                                 \
  }

REPORTING(MPI_Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session), (info, errhandler, session))
REPORTING(MPI_Session_finalize, (MPI_Session * session), (session))
#endif
