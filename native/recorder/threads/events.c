/* Adds what threads wait for in the process to the trace. */
#include "recorder/threads/events.h"

#include "recorder/recording/recorder.h"
#include "recorder/recording/thread_sites.h"

/* Their names are in the header of the file. */
EB_CALL_OF(EB_CALL_PART, pthread_create);
EB_CALL_OF(EB_CALL_PART, pthread_exit);
EB_CALL_OF(EB_CALL_PART, pthread_join);
EB_CALL_OF(EB_CALL_PART, pthread_barrier_wait);
EB_CALL_OF(EB_CALL_PART, omp_parallel);
EB_CALL_OF(EB_CALL_PART, omp_arrive);
EB_CALL_OF(EB_CALL_PART, omp_join);

static const eb_call *const calls[] = {
    [EB_THREAD_CREATES] = &pthread_create_call,
    [EB_THREAD_BEGINS] = &pthread_create_call,
    [EB_THREAD_ENDS] = &pthread_exit_call,
    [EB_THREAD_JOINS] = &pthread_join_call,
    [EB_THREAD_MEETS] = &pthread_barrier_wait_call,
    [EB_TASK_CREATES] = &omp_parallel_call,
    [EB_TASK_BEGINS] = &omp_parallel_call,
    [EB_TASK_ENDS] = &omp_arrive_call,
    [EB_TASK_JOINS] = &omp_join_call,
};

static uint64_t num_begun;

uint64_t eb_thread_serials(uint32_t num) { return __atomic_fetch_add(&num_begun, num, __ATOMIC_RELAXED) + 1; }

struct eb_thread *eb_thread_recorded(const char *frame) {
  if (!eb_trace_is_on() || !__atomic_load_n(&eb_recorder_is_on, __ATOMIC_RELAXED)) return NULL;
  eb_thread *const thread = eb_thread_current ? eb_thread_current : eb_thread_begin();
  if (!thread) return NULL;
  if (thread->is_inside) {
    if (!eb_thread_has_left(thread, frame)) return NULL;
    thread->is_inside = false;
  }
  return thread;
}

bool eb_thread_events_expect(void) {
  if (eb_trace.is_shared) return true;
  /* The thread that called MPI_Init is the only one that may call the MPI. */
  if (!eb_recorder_is_of_first_thread()) return false;
  eb_trace.is_shared = true;
  return true;
}

void eb_thread_event_add(eb_thread *by, const eb_thread_event *event) {
  const bool waits = event->kind == EB_THREAD_JOINS || event->kind == EB_THREAD_MEETS || event->kind == EB_TASK_JOINS;
  if (waits) by->joined_ticks += event->end_ticks - event->begin_ticks; /* nobody adds waits of others */
  const bool begins = event->kind == EB_THREAD_BEGINS || event->kind == EB_TASK_BEGINS;
  const eb_traced record = {
      .begin_ticks = event->begin_ticks,
      .ticks = event->end_ticks - event->begin_ticks,
      .bytes = event->identity,
      .site = (uint64_t)(uintptr_t)event->site,
      .what = eb_traced_what(0, begins ? EB_ROLE_RECEIVED : EB_ROLE_CALL, EB_TRACED_THREAD),
      .peer = EB_PEER_NONE,
      .tag = event->kind == EB_THREAD_MEETS ? event->num : EB_TAG_NONE,
      .thread = (uint16_t)(event->thread < UINT16_MAX ? event->thread : UINT16_MAX),
      .call = (uint16_t)eb_call_number(calls[event->kind]),
  };
  if (!eb_trace_is_on()) return;
  eb_thread_site_add(event->site);
  const uint64_t number = eb_trace_add(&record);
  if (event->thread == by->number) __atomic_store_n(&by->traced_number, number, __ATOMIC_RELAXED);
  if (eb_trace_num_unwritten() >= EB_TRACE_RING / 2) eb_recorder_write_trace();
}

void eb_thread_did(eb_thread *thread, eb_thread_event_kind kind, uint64_t identity, int num, uint64_t begin_ticks,
                   const void *site) {
  const eb_thread_event event = {kind, thread->number, identity, num, begin_ticks, eb_recorder_ticks(), site};
  eb_thread_event_add(thread, &event);
}
