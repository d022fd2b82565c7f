/* Adds what threads wait for in the process to the trace. */
#include "recorder/threads/events.h"

#include "recorder/recording/recorder.h"
#include "recorder/recording/thread_sites.h"

/* Their names are in the header of the file. */
EB_CALL_OF(EB_CALL_PART, pthread_create);
EB_CALL_OF(EB_CALL_PART, pthread_exit);
EB_CALL_OF(EB_CALL_PART, pthread_join);
EB_CALL_OF(EB_CALL_PART, pthread_barrier_wait);

static const eb_call *const calls[] = {
    [EB_THREAD_CREATES] = &pthread_create_call,     [EB_THREAD_BEGINS] = &pthread_create_call,
    [EB_THREAD_ENDS] = &pthread_exit_call,          [EB_THREAD_JOINS] = &pthread_join_call,
    [EB_THREAD_MEETS] = &pthread_barrier_wait_call,
};

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

void eb_thread_event(eb_thread *thread, eb_thread_event_kind kind, uint64_t identity, int num, uint64_t begin_ticks,
                     const void *site) {
  const eb_role role = kind == EB_THREAD_BEGINS ? EB_ROLE_RECEIVED : EB_ROLE_CALL;
  const uint64_t ticks = eb_recorder_ticks() - begin_ticks;
  const eb_traced record = {
      .begin_ticks = begin_ticks,
      .ticks = ticks,
      .bytes = identity,
      .site = (uint64_t)(uintptr_t)site,
      .what = eb_traced_what(0, role, EB_TRACED_THREAD),
      .peer = EB_PEER_NONE,
      .tag = kind == EB_THREAD_MEETS ? num : EB_TAG_NONE,
      .thread = (uint16_t)(thread->number < UINT16_MAX ? thread->number : UINT16_MAX),
      .call = (uint16_t)eb_call_number(calls[kind]),
  };
  if (!eb_trace_is_on()) return;
  eb_thread_site_add(site);
  if (kind == EB_THREAD_JOINS || kind == EB_THREAD_MEETS) thread->joined_ticks += ticks;
  __atomic_store_n(&thread->traced_number, eb_trace_add(&record), __ATOMIC_RELAXED);
  if (eb_trace_num_unwritten() >= EB_TRACE_RING / 2) eb_recorder_write_trace();
}
