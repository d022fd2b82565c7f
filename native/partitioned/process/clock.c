/* Compares the processor's counter with the system's clock. */
#include "partitioned/process/clock.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Shorter comparisons are too coarse. */
#define MIN_S 1e-3

eb_clock_state eb_clock;

/* Is its frequency constant in every state of the processor, and the same on all cores? */
static bool is_constant(void) {
#if defined(__x86_64__)
  /* The processor reports only the former; Linux checks both, and uses the counter as its clock if both hold. */
  char name[8] = "";
  FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
  if (!file) return false;
  const bool is_tsc = fgets(name, sizeof name, file) && strncmp(name, "tsc", 3) == 0;
  fclose(file);
  return is_tsc;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

/* One moment by both: of ten tries the one in which least time passed between two readings of the clock. */
static void read_both(double *now_s, uint64_t *ticks) {
  double least_s = HUGE_VAL;
  for (int try = 0; try < 10; try++) {
    const double before_s = eb_now_s();
    const uint64_t seen = eb_ticks();
    const double took_s = eb_now_s() - before_s;
    if (took_s >= least_s) continue;
    least_s = took_s;
    *now_s = before_s + took_s / 2;
    *ticks = seen;
  }
}

void eb_clock_begin(void) {
  eb_clock = (eb_clock_state){0};
  read_both(&eb_clock.begin_s, &eb_clock.begin_ticks);
}

void eb_clock_settle(void) {
  enum { NUM_READS = 100 };
  double now_s = 0;
  uint64_t ticks = 0;
  read_both(&now_s, &ticks);
  const double took_s = now_s - eb_clock.begin_s;
  if (is_constant() && took_s >= MIN_S) eb_clock.tick_s = took_s / (double)(ticks - eb_clock.begin_ticks);
  const double begin_s = eb_stopwatch_s();
  for (int read = 1; read < NUM_READS; read++) (void)eb_stopwatch_s();
  eb_clock.read_s = (eb_stopwatch_s() - begin_s) / NUM_READS;
}
