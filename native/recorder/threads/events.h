/* What threads of the process wait for in it, as records of the trace: which thread created, joined or met which at a barrier. They
 * are no calls of the MPI, and are counted nowhere else.
 */
#ifndef EB_THREAD_EVENTS_H
#define EB_THREAD_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
  EB_THREAD_CREATES, /* this thread another one, whose serial number is the identity of the record */
  EB_THREAD_BEGINS, /* this one; the identity is its serial number */
  EB_THREAD_ENDS, /* the same */
  EB_THREAD_JOINS, /* another one, which has ended, by its serial number */
  EB_THREAD_MEETS, /* others at a barrier: the identity of the barrier, and how many meet there */
  /* The same of the threads of a parallel region of OpenMP, each of which counts as one of its own. */
  EB_TASK_CREATES,
  EB_TASK_BEGINS,
  EB_TASK_ENDS,
  EB_TASK_JOINS,
} eb_thread_event_kind;

typedef struct {
  eb_thread_event_kind kind;
  uint32_t thread; /* its number */
  uint64_t identity;
  int num; /* of EB_THREAD_MEETS */
  uint64_t begin_ticks, end_ticks;
  const void *site;
} eb_thread_event;

struct eb_thread;

/* The calling thread, if what it does now is to be recorded: it is not within the MPI, which has threads of its own. Else NULL. */
struct eb_thread *eb_thread_recorded(const char *frame);

/* Before a thread creates the first other one: more than one adds to the trace from now on. False: others may be adding to it already
 * that do not expect that. */
bool eb_thread_events_expect(void);

/* Serial numbers for so many threads that begin: the first of them. */
uint64_t eb_thread_serials(uint32_t num);

/* Adds a record. `by`: the calling thread. */
void eb_thread_event_add(struct eb_thread *by, const eb_thread_event *event);

/* The same of something that the calling thread has done until now. */
void eb_thread_did(struct eb_thread *thread, eb_thread_event_kind kind, uint64_t identity, int num, uint64_t begin_ticks,
                   const void *site);

#endif
