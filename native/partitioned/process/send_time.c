/* A place per thread, on its own cache line. */
#include "partitioned/process/send_time.h"

atomic_int eb_send_time_num_observed;

static struct {
  _Alignas(64) _Atomic double spent_s;
} places[EB_SEND_TIME_PLACES];
static atomic_uint num_threads;
static _Thread_local unsigned own_place __attribute__((tls_model("initial-exec"))); /* from 1; 0: none yet */

static unsigned place(void) {
  if (own_place == 0) own_place = 1 + atomic_fetch_add_explicit(&num_threads, 1, memory_order_relaxed) % EB_SEND_TIME_PLACES;
  return own_place - 1;
}

static double spent_at(unsigned at) { return atomic_load_explicit(&places[at].spent_s, memory_order_relaxed); }

/* Two threads of one place may lose an addition, which hardly matters. */
void eb_send_time_add(double spent_s) {
  atomic_store_explicit(&places[place()].spent_s, spent_at(place()) + spent_s, memory_order_relaxed);
}

void eb_send_time_read(double *before_s) {
  for (unsigned at = 0; at < EB_SEND_TIME_PLACES; at++) before_s[at] = spent_at(at);
}

double eb_send_time_since_s(const double *before_s) { return spent_at(place()) - before_s[place()]; }
