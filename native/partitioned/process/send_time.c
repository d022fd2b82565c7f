/* A place per thread, on its own cache line. */
#include "partitioned/process/send_time.h"

atomic_int eb_send_time_num_observed;

static struct {
  _Alignas(64) _Atomic double sends_s;
  _Atomic double readings_s;
} places[EB_SEND_TIME_PLACES];
static atomic_uint num_threads;
static _Thread_local unsigned own_place __attribute__((tls_model("initial-exec"))); /* from 1; 0: none yet */

static unsigned place(void) {
  if (own_place == 0) own_place = 1 + atomic_fetch_add_explicit(&num_threads, 1, memory_order_relaxed) % EB_SEND_TIME_PLACES;
  return own_place - 1;
}

static eb_send_time spent_at(unsigned at) {
  return (eb_send_time){atomic_load_explicit(&places[at].sends_s, memory_order_relaxed),
                        atomic_load_explicit(&places[at].readings_s, memory_order_relaxed)};
}

/* Two threads of one place may lose an addition, which hardly matters. */
static void add(_Atomic double *sum_s, double spent_s) {
  atomic_store_explicit(sum_s, atomic_load_explicit(sum_s, memory_order_relaxed) + spent_s, memory_order_relaxed);
}

void eb_send_time_add_send(double spent_s) { add(&places[place()].sends_s, spent_s); }

void eb_send_time_add_reading(double spent_s) { add(&places[place()].readings_s, spent_s); }

void eb_send_time_read(eb_send_time *before) {
  for (unsigned at = 0; at < EB_SEND_TIME_PLACES; at++) before[at] = spent_at(at);
}

eb_send_time eb_send_time_since(const eb_send_time *before) {
  const eb_send_time now = spent_at(place()), then = before[place()];
  return (eb_send_time){now.sends_s - then.sends_s, now.readings_s - then.readings_s};
}
