/* Functions of POSIX threads by which threads of the program wait for each other: pthread_create, pthread_join and barriers, also on
 * behalf of C++'s std::thread. Recorded with `--events` only; otherwise each calls the next one and that is all.
 *
 * Threads that begin before MPI_Init returns or that the MPI creates are not recorded, nor are waits for them.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/recording/recorder.h"
#include "recorder/threads/events.h"
#include "recorder/threads/known.h"

#define EB_TLS __thread __attribute__((tls_model("initial-exec")))

typedef void *routine(void *);

typedef struct {
  routine *start;
  void *argument;
  uint64_t serial;
} beginning;

/* The thread is creating one, or notes a barrier: a memory allocator may create one on behalf of that. */
static EB_TLS bool is_creating;

/* As the program would find it without the recorder; NULL: the process has none. */
static void *found_of(const char *name) { return dlsym(RTLD_NEXT, name); }

static void *next_of(const char *name) {
  void *const found = found_of(name);
  if (!found) {
    fprintf(stderr, "earlybird: this process has no %s; run the program without `earlybird record`\n", name);
    abort();
  }
  return found;
}
#define EB_NEXT_THREAD(name)                                                    \
  static __typeof__(&name) known_##name;                                        \
  static __typeof__(&name) next_##name(void) {                                  \
    __typeof__(&name) known = __atomic_load_n(&known_##name, __ATOMIC_RELAXED); \
    if (known) return known;                                                    \
    known = (__typeof__(&name))next_of(#name);                                  \
    __atomic_store_n(&known_##name, known, __ATOMIC_RELAXED);                   \
    return known;                                                               \
  }
EB_NEXT_THREAD(pthread_create)
EB_NEXT_THREAD(pthread_join)
EB_NEXT_THREAD(pthread_barrier_init)
EB_NEXT_THREAD(pthread_barrier_destroy)
EB_NEXT_THREAD(pthread_barrier_wait)

/* While a library is loaded, other threads wait in dlsym, and its initialisation may wait for them: all is found before. */
#define EB_FIND(name) __atomic_store_n(&known_##name, (__typeof__(&name))found_of(#name), __ATOMIC_RELAXED)

/* A process that keeps no events notes nothing. A child must not find the lock of a thread that it does not have. */
static bool is_wanted;
__attribute__((constructor)) static void begin_process(void) {
  EB_FIND(pthread_create);
  EB_FIND(pthread_join);
  EB_FIND(pthread_barrier_init);
  EB_FIND(pthread_barrier_destroy);
  EB_FIND(pthread_barrier_wait);
  const char *const folder = getenv("EARLYBIRD_RECORD"), *const events = getenv("EARLYBIRD_RECORD_EVENTS");
  is_wanted = folder && *folder && events && *events && strcmp(events, "0") != 0;
  if (is_wanted) (void)pthread_atfork(eb_known_lock, eb_known_unlock, eb_known_unlock);
}

static const void *site_of(eb_thread *thread, eb_caller caller) { return eb_site_of(&thread->sites, caller); }

/* Of this thread. */
static EB_TLS uint64_t serial;
static EB_TLS const void *start;

static void end(eb_thread *thread) { eb_thread_did(thread, EB_THREAD_ENDS, serial, 0, eb_recorder_ticks(), start); }

static void *begin(void *given) {
  const beginning own = *(beginning *)given;
  free(given);
  /* Whoever creates it has to note its handle first. */
  eb_known_lock();
  eb_known_unlock();
  const uint64_t begin_ticks = eb_recorder_ticks();
  eb_thread *const thread = eb_thread_recorded(__builtin_dwarf_cfa());
  if (thread) {
    /* A place is the address after a call: that of a routine, after its first byte. */
    start = (const char *)own.start + 1;
    serial = own.serial;
    eb_thread_did(thread, EB_THREAD_BEGINS, serial, 0, begin_ticks, start);
    thread->at_end = end;
  }
  return own.start(own.argument);
}

EB_EXPORT int pthread_create(pthread_t *restrict created, const pthread_attr_t *restrict attributes, routine *begins_with,
                             void *restrict argument) {
  const eb_caller caller = EB_CALLER;
  eb_thread *const thread = is_creating ? NULL : eb_thread_recorded(caller.frame);
  beginning *const given = thread && eb_thread_events_expect() ? malloc(sizeof *given) : NULL;
  if (!given) return next_pthread_create()(created, attributes, begins_with, argument);
  const uint64_t number = eb_thread_serials(1), begin_ticks = eb_recorder_ticks();
  *given = (beginning){begins_with, argument, number};
  is_creating = true;
  eb_known_lock();
  const int rc = next_pthread_create()(created, attributes, begin, given);
  if (rc == 0) eb_known_thread_add(*created, number);
  eb_known_unlock();
  is_creating = false;
  if (rc == 0) eb_thread_did(thread, EB_THREAD_CREATES, number, 0, begin_ticks, site_of(thread, caller));
  else free(given);
  return rc;
}

EB_EXPORT int pthread_join(pthread_t joined, void **result) {
  const eb_caller caller = EB_CALLER;
  eb_thread *const thread = eb_thread_recorded(caller.frame);
  /* Forgotten before it has ended, after which another thread may have its handle. */
  const uint64_t number = thread ? eb_known_thread_take(joined) : 0;
  if (number == 0) return next_pthread_join()(joined, result);
  const uint64_t begin_ticks = eb_recorder_ticks();
  const int rc = next_pthread_join()(joined, result);
  if (rc != 0) return rc;
  eb_thread_did(thread, EB_THREAD_JOINS, number, 0, begin_ticks, site_of(thread, caller));
  return rc;
}

/* Barriers of several processes are left out: what others do there is not in this trace. */
EB_EXPORT int pthread_barrier_init(pthread_barrier_t *restrict barrier, const pthread_barrierattr_t *restrict attributes,
                                   unsigned num) {
  int shared = PTHREAD_PROCESS_PRIVATE;
  const int rc = next_pthread_barrier_init()(barrier, attributes, num);
  if (rc != 0 || !is_wanted ||
      (attributes && (pthread_barrierattr_getpshared(attributes, &shared) != 0 || shared == PTHREAD_PROCESS_SHARED)))
    return rc;
  is_creating = true;
  eb_known_barrier_add(barrier, num);
  is_creating = false;
  return rc;
}

EB_EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier) {
  if (is_wanted) eb_known_barrier_forget(barrier);
  return next_pthread_barrier_destroy()(barrier);
}

EB_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier) {
  const eb_caller caller = EB_CALLER;
  eb_thread *const thread = eb_thread_recorded(caller.frame);
  eb_known_barrier known = {0};
  if (thread && eb_trace.is_shared) known = eb_known_barrier_at(barrier);
  if (known.identity == 0) return next_pthread_barrier_wait()(barrier);
  const uint64_t begin_ticks = eb_recorder_ticks();
  const int rc = next_pthread_barrier_wait()(barrier);
  if (rc == 0 || rc == PTHREAD_BARRIER_SERIAL_THREAD)
    eb_thread_did(thread, EB_THREAD_MEETS, known.identity, (int)known.num, begin_ticks, site_of(thread, caller));
  return rc;
}
