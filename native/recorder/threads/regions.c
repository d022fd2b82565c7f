/* Parallel regions of OpenMP, as a runtime with OMPT reports them: LLVM's libomp and Intel's libiomp5, on which programs that
 * GCC has compiled run as well.
 *
 * Of nested regions only the outermost counts. The runtime calls everything here, on the thread that it is about. What threads do is
 * added to the trace at the end of a region, by the thread that has begun it: others add nothing, as they may not call the MPI.
 */
#include <stdlib.h>

#include "recorder/recording/arrivals.h"
#include "recorder/recording/recorder.h"
#include "recorder/threads/events.h"
#include "recorder/threads/ompt.h"

#define EB_TLS __thread __attribute__((tls_model("initial-exec")))

typedef struct {
  const void *site;
  uint32_t num;
  uint64_t arrived_ticks[EB_ARRIVALS_MAX_THREADS]; /* 0: not yet */
  /* With a trace: when it began, and when each of its threads did; their numbers. */
  uint64_t begin_ticks, began_ticks[EB_ARRIVALS_MAX_THREADS];
  uint32_t threads[EB_ARRIVALS_MAX_THREADS];
} region;

/* A thread begins one outermost region at a time. */
static EB_TLS region *own;
/* That in which the thread has a task, its number there, and the depth of tasks within. */
static EB_TLS region *present;
static EB_TLS uint32_t number, depth;

static void begin_region(ompt_data_t *encountering_task, const void *frame, ompt_data_t *parallel, unsigned requested, int flags,
                         const void *site) {
  (void)encountering_task, (void)frame, (void)requested, (void)flags;
  parallel->ptr = NULL;
  if (present || !__atomic_load_n(&eb_recorder_is_on, __ATOMIC_RELAXED)) return;
  if (!own) own = calloc(1, sizeof *own);
  if (!own) return;
  own->site = site;
  own->num = 0;
  own->begin_ticks = eb_recorder_ticks();
  parallel->ptr = own;
}

static void task(int endpoint, ompt_data_t *parallel, ompt_data_t *data, unsigned num, unsigned index, int flags) {
  (void)data, (void)flags;
  if (endpoint == OMPT_SCOPE_END) {
    if (depth > 0 && --depth == 0) present = NULL;
    return;
  }
  if (present) {
    depth++;
    return;
  }
  if (!parallel || !parallel->ptr) return;
  present = parallel->ptr;
  number = index;
  depth = 1;
  if (index < EB_ARRIVALS_MAX_THREADS) {
    const eb_thread *const thread = !eb_trace_is_on() ? NULL : eb_thread_current ? eb_thread_current : eb_thread_begin();
    present->arrived_ticks[index] = 0;
    present->began_ticks[index] = thread ? eb_recorder_ticks() : 0;
    present->threads[index] = thread ? thread->number : 0;
  }
  if (present == own) own->num = num < EB_ARRIVALS_MAX_THREADS ? num : EB_ARRIVALS_MAX_THREADS;
}

static void synchronise(int kind, int endpoint, ompt_data_t *parallel, ompt_data_t *data, const void *site) {
  (void)parallel, (void)data, (void)site;
  const bool is_implicit = kind == OMPT_BARRIER_IMPLICIT || kind == OMPT_BARRIER_IMPLICIT_PARALLEL;
  if (!present || depth != 1 || endpoint != OMPT_SCOPE_BEGIN || !is_implicit || number >= EB_ARRIVALS_MAX_THREADS) return;
  present->arrived_ticks[number] = eb_recorder_ticks(); /* the last one before the region's end counts */
}

/* The region's own thread waits for the others one after another. */
static void trace_region(eb_thread *thread, const region *ended) {
  if (!eb_trace_is_on() || thread->is_inside || ended->num < 2 || !eb_thread_events_expect()) return;
  const uint64_t serial = eb_thread_serials(ended->num), now = eb_recorder_ticks();
  uint64_t joined = ended->arrived_ticks[0] ? ended->arrived_ticks[0] : now;
  for (uint32_t t = 1; t < ended->num; t++) {
    const uint64_t began = ended->began_ticks[t], arrived = ended->arrived_ticks[t], from = joined;
    if (began == 0 || arrived < began) continue;
    if (arrived > joined) joined = arrived;
    const eb_thread_event events[] = {
        {EB_TASK_CREATES, thread->number, serial + t, 0, ended->begin_ticks, ended->begin_ticks, ended->site},
        {EB_TASK_BEGINS, ended->threads[t], serial + t, 0, began, began, ended->site},
        {EB_TASK_ENDS, ended->threads[t], serial + t, 0, arrived, arrived, ended->site},
        {EB_TASK_JOINS, thread->number, serial + t, 0, from, t + 1 == ended->num && now > joined ? now : joined, ended->site},
    };
    for (size_t e = 0; e < sizeof events / sizeof events[0]; e++) eb_thread_event_add(thread, &events[e]);
  }
}

static void end_region(ompt_data_t *parallel, ompt_data_t *encountering_task, int flags, const void *site) {
  (void)encountering_task, (void)flags, (void)site;
  region *const ended = parallel->ptr;
  if (!ended || !__atomic_load_n(&eb_recorder_is_on, __ATOMIC_RELAXED)) return;
  eb_thread *thread = eb_thread_current ? eb_thread_current : eb_thread_begin();
  if (!thread) return;
  eb_arrivals_add(&thread->epoch.arrivals, ended->site, ended->num, ended->arrived_ticks);
  trace_region(thread, ended);
}

static int initialize(ompt_lookup_fn *lookup, int device, ompt_data_t *tool) {
  (void)device, (void)tool;
  ompt_set_callback_fn *set = (ompt_set_callback_fn *)lookup("ompt_set_callback");
  if (!set) return 0;
  (void)set(OMPT_PARALLEL_BEGIN, (ompt_function *)begin_region);
  (void)set(OMPT_PARALLEL_END, (ompt_function *)end_region);
  (void)set(OMPT_IMPLICIT_TASK, (ompt_function *)task);
  (void)set(OMPT_SYNC_REGION, (ompt_function *)synchronise);
  return 1;
}

static void finalize(ompt_data_t *tool) { (void)tool; }

/* The runtime looks this up when it starts. */
EB_EXPORT ompt_start_tool_result_t *ompt_start_tool(unsigned omp_version, const char *runtime_version) {
  static ompt_start_tool_result_t tool = {initialize, finalize, {0}};
  const char *folder = getenv("EARLYBIRD_RECORD");
  (void)omp_version, (void)runtime_version;
  return folder && *folder ? &tool : NULL;
}
