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
} eb_thread_event_kind;

struct eb_thread;

/* The calling thread, if what it does now is to be recorded: it is not within the MPI, which has threads of its own. Else NULL. */
struct eb_thread *eb_thread_recorded(const char *frame);

/* Before a thread creates the first other one: more than one adds to the trace from now on. False: others may be adding to it already
 * that do not expect that. */
bool eb_thread_events_expect(void);

/* Adds the record of something that took from `begin_ticks` until now. `num`: of EB_THREAD_MEETS. */
void eb_thread_event(struct eb_thread *thread, eb_thread_event_kind kind, uint64_t identity, int num, uint64_t begin_ticks,
                     const void *site);

#endif
