/* The frame of a wrapper: a call is one line where its family has one. */
#ifndef EB_WRAP_H
#define EB_WRAP_H

#include "include/earlybird.h"
#include "recorder/recording/recorder.h"

/* Defines the call `name`: calls the next function of that name and then, where the call is recorded, COUNTED. In it are the
 * parameters, `span`, `call` (the call's number) and `rc`. */
#define EB_WRAP(name, PARAMETERS, ARGUMENTS, COUNTED) EB_WRAP_AS(EB_CALL_ALONE, name, PARAMETERS, ARGUMENTS, COUNTED)
#define EB_WRAP_OPEN(name, PARAMETERS, ARGUMENTS, COUNTED) EB_WRAP_AS(EB_CALL_OPEN, name, PARAMETERS, ARGUMENTS, COUNTED)
#define EB_WRAP_PART(name, PARAMETERS, ARGUMENTS, COUNTED) EB_WRAP_AS(EB_CALL_PART, name, PARAMETERS, ARGUMENTS, COUNTED)
#define EB_WRAP_POLL(name, PARAMETERS, ARGUMENTS, COUNTED) EB_WRAP_AS(EB_CALL_POLL, name, PARAMETERS, ARGUMENTS, COUNTED)
#define EB_WRAP_AS(kind, name, PARAMETERS, ARGUMENTS, COUNTED) EB_WRAP_ABOUT(kind, name, PARAMETERS, ARGUMENTS, , COUNTED)
/* ABOUT: what is known of the call before it, such as whom it waits for. */
#define EB_WRAP_ABOUT(kind, name, PARAMETERS, ARGUMENTS, ABOUT, COUNTED) \
  EB_WRAP_NEXT(kind, name, EB_NEXT(name), PARAMETERS, ARGUMENTS, ABOUT, COUNTED)
/* NEXT: the function that is called. */
#define EB_WRAP_NEXT(kind, name, NEXT, PARAMETERS, ARGUMENTS, ABOUT, COUNTED) \
  EB_CALL_OF(kind, name);                                                     \
  EB_EXPORT int name PARAMETERS {                                             \
    eb_span span = eb_span_open(&name##_call);                                \
    ABOUT;                                                                    \
    eb_span_wait(&span);                                                      \
    const int rc = (NEXT)ARGUMENTS;                                           \
    if (eb_span_returned(&span, rc)) {                                        \
      const unsigned call = eb_call_number(&name##_call);                     \
      COUNTED;                                                                \
      eb_span_end(&span);                                                     \
    }                                                                         \
    return rc;                                                                \
  }

/* The same with a quick way before it: see quick.h. QUICKLY returns what the call returns, or goes on. */
#define EB_UNPACKED(...) __VA_ARGS__
#define EB_QUICK_WAY(name, PARAMETERS, ARGUMENTS, QUICKLY)                                             \
  static __attribute__((noinline)) int name##_counted(EB_UNPACKED PARAMETERS, const eb_caller caller); \
  EB_EXPORT int name PARAMETERS {                                                                      \
    const eb_caller caller = EB_CALLER;                                                                \
    QUICKLY;                                                                                           \
    return name##_counted(EB_UNPACKED ARGUMENTS, caller);                                              \
  }                                                                                                    \
  static int name##_counted(EB_UNPACKED PARAMETERS, const eb_caller caller)
#define EB_WRAP_QUICK(kind, name, NEXT, PARAMETERS, ARGUMENTS, QUICKLY, ABOUT, COUNTED) \
  EB_CALL_OF(kind, name);                                                               \
  EB_QUICK_WAY(name, PARAMETERS, ARGUMENTS, QUICKLY) {                                  \
    eb_span span = eb_span_open_of(&name##_call, caller);                               \
    ABOUT;                                                                              \
    eb_span_wait(&span);                                                                \
    const int rc = (NEXT)ARGUMENTS;                                                     \
    if (eb_span_returned(&span, rc)) {                                                  \
      const unsigned call = eb_call_number(&name##_call);                               \
      COUNTED;                                                                          \
      eb_span_end(&span);                                                               \
    }                                                                                   \
    return rc;                                                                          \
  }

/* COUNTED of a call that starts a request, which keeps the epoch open whatever is counted. */
#define EB_OPENED(COUNTED)                     \
  if (rc == MPI_SUCCESS) eb_span_opens(&span); \
  COUNTED;                                     \
  if (rc == MPI_SUCCESS) eb_span_opened(&span, request)
/* A call that all ranks of `comm` make. */
#define EB_ABOUT_ALL EB_ENTERS(EB_NO_ROOT, EB_BYTES_UNKNOWN)
/* The same with what must be equal on all of them. */
#define EB_ENTERS(root, bytes) eb_span_enters(&span, comm, root, bytes)

/* Calls of MPI 4 with counts of MPI_Count. */
#ifdef EB_HAS_LARGE_COUNT
#define EB_LARGE(...) __VA_ARGS__
#else
#define EB_LARGE(...)
#endif

#ifdef EB_HAS_ISENDRECV
#define EB_SENDRECV_REQUEST(...) __VA_ARGS__
#else
#define EB_SENDRECV_REQUEST(...)
#endif

/* The calls that other calls complete have been counted already: only time. */
#define EB_ONLY_TIME eb_add_call(&span, call, NULL, EB_PEER_NONE, 0)

#endif
