/* When the threads of a parallel region reach its end: how long each of them waits there for the last one.
 *
 * A program that sends after the region could have sent the part of a thread that much earlier. So the arrivals of a region are
 * those of the phase whose first send follows it.
 */
#ifndef EB_ARRIVALS_H
#define EB_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

/* Of a larger team the first ones count. Classes of nanoseconds are powers of two, as those of sizes: see table.h. */
enum { EB_ARRIVALS_MAX_THREADS = 256, EB_ARRIVALS_NUM_CLASSES = 48, EB_ARRIVALS_MAX_TOTALS = 256 };

/* Of one region that has ended. */
typedef struct {
  const void *site; /* the address after its call */
  uint32_t num;
  uint64_t lead_ticks[EB_ARRIVALS_MAX_THREADS]; /* from the arrival of a thread to that of the last one */
} eb_arrivals;

/* All regions of one place before one phase. `num`: the largest team. */
typedef struct eb_arrivals_total {
  struct eb_arrivals_total *next;
  const void *site;
  uint32_t phase, num, is_dirty;
  uint64_t regions, lead_ticks[EB_ARRIVALS_MAX_THREADS], classes[EB_ARRIVALS_NUM_CLASSES];
} eb_arrivals_total;

/* Of a thread that begins parallel regions. All NULL without any. */
typedef struct {
  eb_arrivals *latest, *taken;
  bool is_latest, is_taken;
  eb_arrivals_total *totals; /* the newest first */
  uint32_t num_totals;
} eb_arrivals_of_thread;

/* A region has ended; `arrived_ticks`: when each of its `num` threads reached the end. */
void eb_arrivals_add(eb_arrivals_of_thread *of, const void *site, uint32_t num, const uint64_t *arrived_ticks);

/* A send follows: the latest region, if any, is that of the present epoch, unless an earlier send of the epoch had one. */
static inline void eb_arrivals_take(eb_arrivals_of_thread *of) {
  if (__builtin_expect(!of->is_latest, 1)) return;
  of->is_latest = false;
  if (of->is_taken) return;
  eb_arrivals *const taken = of->latest;
  of->latest = of->taken;
  of->taken = taken;
  of->is_taken = true;
}

/* The epoch has ended, and is of this phase. */
void eb_arrivals_epoch_ended(eb_arrivals_of_thread *of, uint32_t phase);

#endif
