/* Epochs: what a thread calls until its last open request has completed. Epochs with the same call sites are one phase of the
 * program, such as the exchange of a stencil; the entries of the table are counted for each phase.
 *
 * Only at its end is it known of which phase an epoch is, so its calls are kept until then. A call that opens no request and
 * completes none, such as a blocking collective, is an epoch by itself unless requests are open. Blocking sends and receives
 * between two such calls are one epoch, which ends before a call that starts a request: else a rank at the border of a domain,
 * which sends without a request and then starts the next step with one, would have epochs across the steps of the others.
 */
#ifndef EB_EPOCH_H
#define EB_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/recording/arrivals.h"
#include "recorder/recording/call.h"
#include "recorder/recording/samples.h"
#include "recorder/recording/table.h"

/* An epoch without open requests is cut when it has this many events: an endless sequence of blocking calls has no end of its
 * own. Others may have more, such as one MPI_Alltoallv of many ranks, up to a limit of memory (48 MB). */
enum { EB_EPOCH_FEW_EVENTS = 2048, EB_EPOCH_MAX_EVENTS = 1 << 20, EB_PHASE_MAX_STEPS = 32 };

/* A place in the program that calls the MPI: the address after the call. */
typedef struct {
  const void *site;
  uint32_t call;
} eb_step;

typedef struct {
  uint64_t epochs, ticks, first_ticks, last_ticks;
  eb_samples *samples; /* NULL: none yet */
  uint32_t is_dirty;
} eb_phase_totals;

enum { EB_EPOCH_NUM_REMEMBERED = 16 };

/* Of a thread. */
typedef struct {
  uint64_t begin_ticks, end_ticks; /* of the first call, 0 before it, and of the last */
  uint32_t num_open;               /* requests that the thread has started, and that no call of it has completed */
  uint32_t num_closed_by_others;   /* of these: completed by other threads */
  bool is_over;                    /* it ends with the present call */
  bool is_cut;                     /* a part of one that was cut */
  bool has_messages;               /* sent or received */
  eb_step present;                 /* the present call */
  uint32_t turn; /* odd while the thread is in a call and changes nothing: then others may read the events */
  uint32_t num_events, capacity, num_steps;
  eb_step steps[EB_PHASE_MAX_STEPS]; /* without repetitions, in the order of their first calls */
  eb_event *events;                   /* [capacity] */
  struct {
    uint64_t signature;
    uint32_t phase;
  } remembered[EB_EPOCH_NUM_REMEMBERED];
  eb_phase_totals *totals; /* by phase */
  uint32_t num_totals;
  eb_arrivals_of_thread arrivals; /* of the parallel regions that the thread begins */
} eb_epoch;

/* Of this thread, if it has called the MPI; preloaded, so the loader has room for it. */
extern __thread eb_epoch *eb_epoch_current __attribute__((tls_model("initial-exec")));

/* The distinct steps of a process's epochs, in the order of their appearance. */
typedef struct eb_phase {
  struct eb_phase *next;
  uint64_t signature;
  uint32_t number; /* from 1; 0: of none, as there are too many */
  int region;      /* of MPI_Pcontrol */
  bool is_written;
  uint32_t num_steps;
  eb_step steps[EB_PHASE_MAX_STEPS];
} eb_phase;

/* All of them, the newest first. */
eb_phase *eb_phases_first(void);

/* For whoever writes the file: what the thread has counted of a phase, dirty if that has changed since the last reading. False:
 * no more phases. */
bool eb_phase_totals_read(eb_epoch *epoch, uint32_t phase, eb_phase_totals *totals);

/* The events of the epoch, which has not ended, of a thread that is in a call; copied to memory that the caller frees. NULL: there
 * are none, or the thread has left the call meanwhile. */
eb_event *eb_epoch_pending_read(eb_epoch *epoch, uint32_t *num);

/* The level that MPI_Pcontrol was last called with: marks of the program separate phases. */
extern int eb_epoch_region;

/* Finds the phase, and adds the events to the table's entries of that phase. */
void eb_epoch_end(eb_epoch *epoch, eb_table *table);
/* Ends it where it has no end of its own: what follows is of the same one, but counted as another. Other ranks may cut theirs
 * elsewhere, so of phases that have such epochs none are kept. */
void eb_epoch_cut(eb_epoch *epoch, eb_table *table);
/* Where it is full: makes room for events, or cuts the epoch within a call, whose further events are of the next one. */
void eb_epoch_make_room(eb_epoch *epoch, eb_table *table);

static inline void eb_epoch_add_step(eb_epoch *epoch, const eb_step *step) {
  for (uint32_t s = epoch->num_steps; s-- > 0;)
    if (epoch->steps[s].site == step->site && epoch->steps[s].call == step->call) return;
  if (epoch->num_steps < EB_PHASE_MAX_STEPS) epoch->steps[epoch->num_steps++] = *step;
}

/* Takes over what other threads have completed. True: the last open request was among it. */
static inline bool eb_epoch_settle(eb_epoch *epoch) {
  if (__builtin_expect(__atomic_load_n(&epoch->num_closed_by_others, __ATOMIC_RELAXED) == 0, 1)) return false;
  const uint32_t num = __atomic_exchange_n(&epoch->num_closed_by_others, 0, __ATOMIC_RELAXED);
  epoch->num_open -= num < epoch->num_open ? num : epoch->num_open;
  return epoch->num_open == 0;
}

/* A call begins, of which the events follow. */
static inline void eb_epoch_enter(eb_epoch *epoch, eb_table *table, eb_step present, eb_call_kind kind) {
  const bool is_closed = eb_epoch_settle(epoch);
  const bool is_alone = kind == EB_CALL_ALONE && epoch->num_open == 0;
  const bool begins = kind == EB_CALL_OPEN && epoch->num_open == 0 && epoch->has_messages;
  if (is_alone || is_closed || begins) eb_epoch_end(epoch, table);
  epoch->is_over = is_alone;
  epoch->present = present;
  eb_epoch_add_step(epoch, &present);
}

/* The call waits; it has returned. Only the thread itself writes: others compare the turns before and after they have read. */
static inline void eb_epoch_rest(eb_epoch *epoch) { __atomic_store_n(&epoch->turn, epoch->turn | 1, __ATOMIC_RELEASE); }
static inline void eb_epoch_resume(eb_epoch *epoch) {
  __atomic_store_n(&epoch->turn, (epoch->turn | 1) + 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* The thread has started a request. */
static inline void eb_epoch_open(eb_epoch *epoch) { epoch->num_open++; }

/* Another thread has completed a request of this one. */
static inline void eb_epoch_close_by_other(eb_epoch *epoch) {
  (void)__atomic_add_fetch(&epoch->num_closed_by_others, 1, __ATOMIC_RELAXED);
}

/* A call has completed so many of the thread's own requests. */
static inline void eb_epoch_close(eb_epoch *epoch, uint32_t num) {
  epoch->num_open -= num < epoch->num_open ? num : epoch->num_open;
  if (num > 0 && epoch->num_open == 0) epoch->is_over = true;
}

/* Polling repeats a few calls without end. */
enum { EB_EPOCH_NUM_COMPARED = 4 };

static inline void eb_epoch_add(eb_epoch *epoch, eb_table *table, const eb_event *event) {
  const eb_role role = eb_what_role(event->what);
  if (role == EB_ROLE_SENT) eb_arrivals_take(&epoch->arrivals);
  if (event->messages > 0 && (role == EB_ROLE_SENT || role == EB_ROLE_RECEIVED)) epoch->has_messages = true;
  for (uint32_t back = 1; event->messages == 0 && back <= EB_EPOCH_NUM_COMPARED && back <= epoch->num_events; back++) {
    eb_event *const former = &epoch->events[epoch->num_events - back];
    if (former->what != event->what || former->peer != event->peer || former->messages > 0) continue;
    former->calls += event->calls;
    former->bytes += event->bytes;
    former->ticks += event->ticks;
    return;
  }
  if (__builtin_expect(epoch->num_events == epoch->capacity, 0)) eb_epoch_make_room(epoch, table);
  if (epoch->num_events < epoch->capacity) epoch->events[epoch->num_events++] = *event;
}

#endif
