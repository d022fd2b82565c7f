/* The page of this process, and the file that it is mapped from. */
#ifndef EB_PAGE_H
#define EB_PAGE_H

#include "recorder/recording/awaited.h"
#include "recorder/recording/ticks.h"

/* Creates the file. After a failure there is none. Where no page may be mapped, or who reads it is on another node, the file gets a
 * copy of the calls from time to time, and the page is a file of the same name in shared memory: in
 * /dev/shm/earlybird-UID-HASH-NAMESPACE, with the FNV-1a hash of the folder's path and the number of the namespace of processes. */
void eb_page_create(const char *path, bool is_mapped, double tick_s, uint64_t begin_ticks);

/* Starts the agent of this node, if the page is in shared memory; `path` is of its file, `num_nodes` how many there are. */
void eb_page_show(const char *path, uint64_t num_nodes);

/* Writes the copy, if there is one. By one thread at a time. */
void eb_page_write(uint64_t now_ticks);

/* The time in nanoseconds of CLOCK_MONOTONIC that whoever watches the page has noted there last: a clock that costs nothing, and is
 * behind by as long as they look away. Until they have looked once the clock itself. */
static inline uint64_t eb_page_now_ns(void) {
  const uint64_t now_ns = __atomic_load_n(&eb_page_current->awaited.now_ns, __ATOMIC_RELAXED);
  return __builtin_expect(now_ns > eb_page_current->awaited.begin_ns, 1) ? now_ns : eb_recorder_ticks();
}

/* The same for what has an order: later than all before. Threads that may call at once need the clock itself. */
enum { EB_PAGE_STEP_NS = 16 };
EB_OWN extern uint64_t eb_page_last_ns;
static inline uint64_t eb_page_next_ns(void) {
  if (eb_page_is_shared) return eb_recorder_ticks();
  const uint64_t now_ns = eb_page_now_ns(), next_ns = eb_page_last_ns + EB_PAGE_STEP_NS;
  return eb_page_last_ns = now_ns > next_ns ? now_ns : next_ns;
}

/* The place of a thread; NULL: it has none. */
eb_open_call *eb_open_call_of(uint32_t thread);

/* The rank has ended, and how is known: the file is removed. */
void eb_page_remove(void);

#endif
