/* Time in ticks: of the processor's counter where that is good, else nanoseconds of the system's clock. */
#ifndef EB_TICKS_H
#define EB_TICKS_H

#include "partitioned/process/clock.h"

static inline double eb_recorder_tick_s(void) { return eb_clock.tick_s > 0 ? eb_clock.tick_s : 1e-9; }

static inline uint64_t eb_recorder_ticks(void) {
  if (__builtin_expect(eb_clock.tick_s > 0, 1)) return eb_ticks();
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
