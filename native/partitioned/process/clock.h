/* Time: the system's clock, and the processor's counter where that is quicker to read. */
#ifndef EB_CLOCK_H
#define EB_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static inline double eb_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef struct {
  double tick_s;      /* of the counter; 0: it is not used */
  double read_s;      /* duration of eb_stopwatch_s */
  double begin_s;     /* start of the calibration, by the clock */
  uint64_t begin_ticks; /* and by the counter */
} eb_clock_state;

extern eb_clock_state eb_clock;

static inline uint64_t eb_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc(); /* <x86intrin.h> takes longer to compile than all else that is included */
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

/* For differences within this process: 10 ns instead of 24 (an x86 virtual machine). Every Pready of a recorded start
 * reads it. */
static inline double eb_stopwatch_s(void) {
  if (eb_clock.tick_s > 0) return (double)(int64_t)(eb_ticks() - eb_clock.begin_ticks) * eb_clock.tick_s;
  return eb_now_s() - eb_clock.begin_s;
}

/* Adds to a sum to which other threads add, too. */
static inline void eb_add_s(_Atomic double *sum_s, double more_s) {
  double before_s = atomic_load_explicit(sum_s, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(sum_s, &before_s, before_s + more_s, memory_order_relaxed, memory_order_relaxed));
}

/* The counter is compared with the clock between the two calls, which should be at least a millisecond apart; it is used
 * only if its frequency is constant. */
void eb_clock_begin(void);
void eb_clock_settle(void);

#endif
