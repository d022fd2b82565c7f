/* What programs of threads that work at the same moment share: meeting, and failing. */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 8 };

static int num_threads;
static atomic_int num_arrived;

/* Lets all threads go on at the same moment, as no call that sleeps does. Who waits for longer than it takes to arrive gives
 * up its core, which the others may need. */
static void meet(void) {
  const int target = (atomic_fetch_add(&num_arrived, 1) / num_threads + 1) * num_threads;
  for (int spins = 0; atomic_load(&num_arrived) < target; spins++)
    if (num_threads > 2 || spins > 10000) sched_yield();
}

static void fail(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}
