/* Binary heaps of events and of timers. */
#include "timers.h"

#include <stdlib.h>

static bool is_before(const eb_event *a, const eb_event *b) {
  return a->time_s != b->time_s ? a->time_s < b->time_s : a->order < b->order;
}

bool eb_events_post(eb_events *events, eb_event event) {
  if (events->num == events->capacity) {
    const uint64_t capacity = events->capacity ? 2 * events->capacity : 64;
    eb_event *heap = realloc(events->heap, capacity * sizeof *heap);
    if (!heap) return false;
    events->heap = heap;
    events->capacity = capacity;
  }
  event.order = events->posted++;
  uint64_t at = events->num++;
  for (; at; at = (at - 1) / 2) {
    if (!is_before(&event, &events->heap[(at - 1) / 2])) break;
    events->heap[at] = events->heap[(at - 1) / 2];
  }
  events->heap[at] = event;
  return true;
}

eb_event eb_events_take(eb_events *events) {
  const eb_event first = events->heap[0], moved = events->heap[--events->num];
  uint64_t at = 0;
  for (;;) {
    uint64_t below = 2 * at + 1;
    if (below >= events->num) break;
    if (below + 1 < events->num && is_before(&events->heap[below + 1], &events->heap[below])) below++;
    if (!is_before(&events->heap[below], &moved)) break;
    events->heap[at] = events->heap[below];
    at = below;
  }
  events->heap[at] = moved;
  return first;
}

void eb_events_free(eb_events *events) { free(events->heap); }

bool eb_timers_extend(eb_timers *timers, uint32_t capacity) {
  if (capacity <= timers->capacity) return true;
  const uint64_t wanted = 2 * (uint64_t)timers->capacity < UINT32_MAX ? 2 * (uint64_t)timers->capacity : UINT32_MAX;
  if (capacity < wanted) capacity = (uint32_t)wanted;
  double *key = realloc(timers->key, capacity * sizeof *key);
  if (key) timers->key = key;
  uint32_t *heap = realloc(timers->heap, capacity * sizeof *heap);
  if (heap) timers->heap = heap;
  int64_t *place = realloc(timers->place, capacity * sizeof *place);
  if (place) timers->place = place;
  if (!key || !heap || !place) return false;
  for (uint32_t index = timers->capacity; index < capacity; index++) place[index] = -1;
  timers->capacity = capacity;
  return true;
}

static bool comes_before(const eb_timers *timers, uint32_t a, uint32_t b) {
  return timers->key[a] != timers->key[b] ? timers->key[a] < timers->key[b] : a < b;
}

static void put(eb_timers *timers, uint32_t at, uint32_t index) {
  timers->heap[at] = index;
  timers->place[index] = at;
}

static void rise(eb_timers *timers, uint32_t at, uint32_t index) {
  for (; at && comes_before(timers, index, timers->heap[(at - 1) / 2]); at = (at - 1) / 2)
    put(timers, at, timers->heap[(at - 1) / 2]);
  put(timers, at, index);
}

static void sink(eb_timers *timers, uint32_t at, uint32_t index) {
  for (;;) {
    uint64_t below = 2 * (uint64_t)at + 1;
    if (below >= timers->num) break;
    if (below + 1 < timers->num && comes_before(timers, timers->heap[below + 1], timers->heap[below])) below++;
    if (!comes_before(timers, timers->heap[below], index)) break;
    put(timers, at, timers->heap[below]);
    at = (uint32_t)below;
  }
  put(timers, at, index);
}

static void settle(eb_timers *timers, uint32_t at, uint32_t index) {
  if (at && comes_before(timers, index, timers->heap[(at - 1) / 2])) rise(timers, at, index);
  else sink(timers, at, index);
}

void eb_timers_set(eb_timers *timers, uint32_t index, double key) {
  timers->key[index] = key;
  const uint32_t at = timers->place[index] < 0 ? timers->num++ : (uint32_t)timers->place[index];
  settle(timers, at, index);
}

void eb_timers_clear(eb_timers *timers, uint32_t index) {
  if (timers->place[index] < 0) return;
  const uint32_t at = (uint32_t)timers->place[index], last = timers->heap[--timers->num];
  timers->place[index] = -1;
  if (last != index) settle(timers, at, last);
}

void eb_timers_free(eb_timers *timers) {
  free(timers->key);
  free(timers->heap);
  free(timers->place);
}
