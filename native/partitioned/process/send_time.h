/* The time that each thread spends in sends of the library, on all channels: it is no work of the program, so that partitions
 * which are ready after such a send are not late. Counted while some channel observes a start. */
#ifndef EB_SEND_TIME_H
#define EB_SEND_TIME_H

#include <stdatomic.h>
#include <stdbool.h>

/* More threads than these share places, which then count the sends of all their threads. */
enum { EB_SEND_TIME_PLACES = 32 };

extern atomic_int eb_send_time_num_observed;

/* Senders that observe a start. */
static inline void eb_send_time_observe(int more) {
  atomic_fetch_add_explicit(&eb_send_time_num_observed, more, memory_order_relaxed);
}

static inline bool eb_send_time_is_counted(void) {
  return atomic_load_explicit(&eb_send_time_num_observed, memory_order_relaxed) > 0;
}

static inline int eb_send_time_num(void) { return atomic_load_explicit(&eb_send_time_num_observed, memory_order_relaxed); }

typedef struct {
  double sends_s;
  double readings_s; /* of the clock, for observations: no work of the program either */
} eb_send_time;

/* Of this thread. */
void eb_send_time_add_send(double spent_s);
void eb_send_time_add_reading(double spent_s);

/* What all threads have spent so far: before[EB_SEND_TIME_PLACES]; and what this thread has spent since then. */
void eb_send_time_read(eb_send_time *before);
eb_send_time eb_send_time_since(const eb_send_time *before);

#endif
