/* MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Abort: where recording begins and ends. MPI_Pcontrol: where regions do. */
#include <stdlib.h>

#include "interpose/objects/fortran_bindings.h"
#include "interpose/objects/identity.h"
#include "recorder/calls/wrap.h"
#include "recorder/recording/hidden.h"
#include "recorder/recording/shared_memory.h"

/* By it libearlybird knows that a recorder before it hides none of its calls: EARLYBIRD_RECORDER_MARK. */
EB_EXPORT const char earlybird_recorder_passes_on = 1;

/* Calls of MPI_Init and MPI_Init_thread within one another: a tool's MPI_Init may call MPI_Init_thread. */
static int depth;

/* Before the MPI begins: another kind of MPI than the recorder was built for has other handles. The reason is printed. */
static void enter(void) {
  if (++depth > 1) return;
  eb_bindings_redirect();
  eb_objects objects = eb_objects_list();
  if (!eb_identity_can_be_called(&objects)) exit(2);
  eb_objects_free(&objects);
  eb_clock_begin();
}

/* Whatever the program needs has its addresses by now. */
__attribute__((constructor)) static void begin_process(void) {
  eb_bindings_redirect();
  eb_hidden_report(false);
}

static int leave(int rc, const eb_call *call, double begin_s, eb_caller caller) {
  if (--depth > 0 || rc != MPI_SUCCESS) return rc;
  const double took_s = eb_now_s() - begin_s;
  eb_bindings_redirect(); /* of plug-ins that the MPI has loaded */
  eb_shared_memory_report();
  eb_clock_settle();
  eb_recorder_begin();
  eb_span span = eb_span_open_of(call, caller);
  eb_span_wait(&span);
  if (eb_span_returned(&span, rc)) {
    span.ticks = (uint64_t)(took_s / eb_recorder_tick_s());
    span.begin_ticks -= span.ticks;
    eb_add_call(&span, eb_call_number(call), NULL, EB_PEER_NONE, 0);
    eb_span_end(&span);
  }
  return rc;
}

EB_CALL(MPI_Init);
EB_EXPORT int MPI_Init(int *argc, char ***argv) {
  enter();
  const double begin_s = eb_now_s();
  return leave(EB_NEXT(MPI_Init)(argc, argv), &MPI_Init_call, begin_s, EB_CALLER);
}

EB_CALL(MPI_Init_thread);
EB_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  enter();
  const double begin_s = eb_now_s();
  return leave(EB_NEXT(MPI_Init_thread)(argc, argv, required, provided), &MPI_Init_thread_call, begin_s, EB_CALLER);
}

/* What has been counted is written before: MPI_Finalize may not return. */
EB_CALL(MPI_Finalize);
EB_EXPORT int MPI_Finalize(void) {
  /* Whatever an error handler of the program has jumped out of, this call is not part of another one. */
  if (eb_thread_current) {
    eb_thread_current->is_inside = false;
    eb_epoch_resume(&eb_thread_current->epoch);
  }
  eb_span span = eb_span_begin(&MPI_Finalize_call); /* which ends the epoch before it */
  eb_recorder_flush(NULL);
  const int rc = EB_NEXT(MPI_Finalize)();
  if (eb_span_returned(&span, rc)) {
    eb_add_call(&span, eb_call_number(&MPI_Finalize_call), NULL, EB_PEER_NONE, 0);
    eb_recorder_flush("finalize");
    span.thread->is_inside = false;
  }
  return rc;
}

EB_CALL(MPI_Abort);
EB_EXPORT int MPI_Abort(MPI_Comm comm, int errorcode) {
  eb_recorder_flush("abort");
  return EB_NEXT(MPI_Abort)(comm, errorcode);
}

/* The standard leaves further arguments to the tool, and this one has none. */
EB_CALL(MPI_Pcontrol);
EB_EXPORT int MPI_Pcontrol(const int level, ...) {
  eb_span span = eb_span_begin(&MPI_Pcontrol_call);
  const int rc = EB_NEXT(MPI_Pcontrol)(level);
  if (eb_span_returned(&span, rc)) {
    eb_add_call(&span, eb_call_number(&MPI_Pcontrol_call), NULL, EB_PEER_NONE, 0);
    eb_span_end(&span);
    __atomic_store_n(&eb_epoch_region, level, __ATOMIC_RELAXED);
  }
  return rc;
}
