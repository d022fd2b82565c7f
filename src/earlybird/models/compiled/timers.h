/* What happens next in a simulation: events that are posted once, and timers whose time changes. */
#ifndef EARLYBIRD_MODELS_TIMERS_H
#define EARLYBIRD_MODELS_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

/* An event; of several at one time the one that was posted first comes first. */
typedef struct {
  double time_s;
  uint64_t order;
  uint32_t kind, index;
  uint32_t turn; /* what the poster needs to recognize an event that no longer counts */
} eb_event;

typedef struct {
  eb_event *heap;
  uint64_t num, capacity, posted;
} eb_events;

/* Returns false if memory is short. */
bool eb_events_post(eb_events *events, eb_event event);
eb_event eb_events_take(eb_events *events);
void eb_events_free(eb_events *events);

/* Keys of the indices 0 .. capacity - 1, of which those that are set can be taken in ascending order; equal keys by index. */
typedef struct {
  double *key;    /* of each index */
  uint32_t *heap; /* indices */
  int64_t *place; /* of each index in the heap, -1 if it is not set */
  uint32_t num, capacity;
} eb_timers;

/* Makes room for indices below `capacity`; returns false if memory is short. */
bool eb_timers_extend(eb_timers *timers, uint32_t capacity);
void eb_timers_set(eb_timers *timers, uint32_t index, double key);
void eb_timers_clear(eb_timers *timers, uint32_t index);
void eb_timers_free(eb_timers *timers);

#endif
