/* Compares the processor's counter with the system's clock. */
#include "partitioned/clock.h"

#include <stdbool.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Shorter comparisons are too coarse. */
#define LEAST_S 1e-3

eb_clock_state eb_clock;

/* Does it run at one speed in every state of the processor, the same on all cores? */
static bool is_constant(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

void eb_clock_begin(void) {
  eb_clock = (eb_clock_state){.begin_s = eb_now_s(), .begin_ticks = eb_ticks()};
}

void eb_clock_settle(void) {
  enum { LOOKS = 100 };
  const double took_s = eb_now_s() - eb_clock.begin_s;
  if (is_constant() && took_s >= LEAST_S) eb_clock.tick_s = took_s / (double)(eb_ticks() - eb_clock.begin_ticks);
  const double begin_s = eb_stopwatch_s();
  for (int look = 1; look < LOOKS; look++) (void)eb_stopwatch_s();
  eb_clock.look_s = (eb_stopwatch_s() - begin_s) / LOOKS;
}
