/* Counts the arrivals of threads at the ends of parallel regions. */
#include "recorder/recording/arrivals.h"

#include <stdlib.h>

#include "recorder/recording/table.h"
#include "recorder/recording/ticks.h"

void eb_arrivals_add(eb_arrivals_of_thread *of, const void *site, uint32_t num, const uint64_t *arrived_ticks) {
  uint64_t last_ticks = 0;
  of->is_latest = false;
  if (num < 2) return; /* no thread waits for another */
  if (!of->latest) of->latest = malloc(sizeof *of->latest);
  if (!of->latest) return;
  for (uint32_t t = 0; t < num; t++) {
    if (arrived_ticks[t] == 0) return; /* the runtime has not reported it */
    if (arrived_ticks[t] > last_ticks) last_ticks = arrived_ticks[t];
  }
  of->latest->site = site;
  of->latest->num = num;
  for (uint32_t t = 0; t < num; t++) of->latest->lead_ticks[t] = last_ticks - arrived_ticks[t];
  of->is_latest = true;
}

static eb_arrivals_total *total_of(eb_arrivals_of_thread *of, uint32_t phase, const void *site) {
  for (eb_arrivals_total *each = of->totals; each; each = each->next)
    if (each->phase == phase && each->site == site) return each;
  eb_arrivals_total *total = of->num_totals < EB_ARRIVALS_MAX_TOTALS ? calloc(1, sizeof *total) : NULL;
  if (!total) return NULL;
  total->phase = phase;
  total->site = site;
  total->next = of->totals;
  of->num_totals++;
  __atomic_store_n(&of->totals, total, __ATOMIC_RELEASE); /* whoever writes the file may be reading */
  return total;
}

void eb_arrivals_epoch_ended(eb_arrivals_of_thread *of, uint32_t phase) {
  if (__builtin_expect(!of->is_taken, 1)) return;
  of->is_taken = false;
  eb_arrivals_total *total = total_of(of, phase, of->taken->site);
  if (!total) return;
  const double tick_ns = eb_recorder_tick_s() * 1e9;
  if (of->taken->num > total->num) __atomic_store_n(&total->num, of->taken->num, __ATOMIC_RELAXED);
  for (uint32_t t = 0; t < of->taken->num; t++) {
    const unsigned class = eb_size_class((uint64_t)((double)of->taken->lead_ticks[t] * tick_ns));
    eb_count(&total->lead_ticks[t], of->taken->lead_ticks[t]);
    eb_count(&total->classes[class < EB_ARRIVALS_NUM_CLASSES ? class : EB_ARRIVALS_NUM_CLASSES - 1], 1);
  }
  eb_count(&total->regions, 1);
  __atomic_store_n(&total->is_dirty, 1, __ATOMIC_RELEASE);
}
