/* Allocates and resets the states of partitions and segments. */
#include "partitioned/wire/tracking.h"

#include <stdlib.h>
#include <string.h>

int eb_tracking_begin(eb_tracking *tracking, int num_partitions, bool is_spread) {
  tracking->num_partitions = num_partitions;
  tracking->partition_stride = is_spread ? 64 : sizeof(eb_partition_state);
  tracking->partitions = calloc((size_t)num_partitions, tracking->partition_stride);
  return tracking->partitions ? 0 : -1;
}

static void unmap(eb_tracking *tracking) {
  free(tracking->segments);
  free(tracking->wide_ranges);
  tracking->segments = NULL;
  tracking->wide_ranges = NULL;
  tracking->num_segments = 0;
}

void eb_tracking_end(eb_tracking *tracking) {
  unmap(tracking);
  free(tracking->partitions);
}

int eb_tracking_map(eb_tracking *tracking, const eb_segments *segments, int64_t partition_bytes) {
  const size_t num = (size_t)segments->num;
  unmap(tracking);
  tracking->segments = aligned_alloc(_Alignof(eb_segment_state), num * sizeof *tracking->segments);
  if (!tracking->segments) return -1;
  const bool is_wide = num > (size_t)UINT16_MAX + 1;
  if (is_wide && !(tracking->wide_ranges = malloc((size_t)tracking->num_partitions * sizeof *tracking->wide_ranges))) return -1;
  memset(tracking->segments, 0, num * sizeof *tracking->segments);
  tracking->num_segments = segments->num;
  for (int p = 0; p < tracking->num_partitions; p++) {
    eb_segment_range range;
    const int64_t begin = p * partition_bytes;
    eb_segments_cover(segments, begin, begin + partition_bytes, &range.first, &range.last);
    if (is_wide) {
      tracking->wide_ranges[p] = range;
    } else {
      eb_tracking_partition(tracking, p)->first_segment = (uint16_t)range.first;
      eb_tracking_partition(tracking, p)->last_segment = (uint16_t)range.last;
    }
    for (int s = range.first; s <= range.last; s++) tracking->segments[s].num_partitions++;
  }
  return 0;
}

void eb_tracking_advance(eb_tracking *tracking) {
  /* Every completed start has marked all partitions, so none is as old as the generation that is used again. */
  if (++tracking->generation == 0) tracking->generation = 1;
}

void eb_tracking_reset(eb_tracking *tracking) {
  for (int s = 0; s < tracking->num_segments; s++) {
    eb_segment_state *const state = &tracking->segments[s];
    atomic_store_explicit(&state->num_unready, state->num_partitions, memory_order_relaxed);
    atomic_store_explicit(&state->has_arrived, false, memory_order_relaxed);
  }
}

bool eb_tracking_is_ready(const eb_tracking *tracking) {
  for (int s = 0; s < tracking->num_segments; s++)
    if (atomic_load_explicit(&tracking->segments[s].num_unready, memory_order_acquire) > 0) return false;
  return true;
}
