/* Allocates and resets the states of partitions and segments. */
#include "partitioned/wire/tracking.h"

#include <stdlib.h>
#include <string.h>

int eb_tracking_begin(eb_tracking *tracking, int num_partitions, bool is_spread, bool is_marked) {
  tracking->num_partitions = num_partitions;
  if (num_partitions > EB_MAX_PARTITION_STATES) {
    /* Not malloc and memset: what is never written takes no memory. */
    if (is_marked) tracking->done_bits = calloc(((size_t)num_partitions + 63) / 64, sizeof *tracking->done_bits);
    return tracking->done_bits || !is_marked ? 0 : -1;
  }
  tracking->partition_stride = is_spread ? 64 : sizeof(eb_partition_state);
  tracking->partitions = calloc((size_t)num_partitions, tracking->partition_stride);
  return tracking->partitions ? 0 : -1;
}

static void unmap(eb_tracking *tracking) {
  free(tracking->segments);
  tracking->segments = NULL;
  tracking->num_segments = 0;
}

void eb_tracking_end(eb_tracking *tracking) {
  unmap(tracking);
  free(tracking->partitions);
  free(tracking->done_bits);
}

int eb_tracking_map(eb_tracking *tracking, const eb_segments *segments, int64_t partition_bytes) {
  const size_t num = (size_t)segments->num;
  unmap(tracking);
  tracking->segments = aligned_alloc(_Alignof(eb_segment_state), num * sizeof *tracking->segments);
  if (!tracking->segments) return -1;
  memset(tracking->segments, 0, num * sizeof *tracking->segments);
  tracking->num_segments = segments->num;
  tracking->map = segments;
  tracking->partition_bytes = partition_bytes;
  tracking->is_searched = !tracking->partitions || num > (size_t)UINT16_MAX + 1;
  for (int s = 0; s < segments->num; s++)
    tracking->segments[s].num_partitions = eb_tracking_num_within(tracking, s, 0, tracking->num_partitions - 1);
  for (int p = 0; !tracking->is_searched && p < tracking->num_partitions; p++) {
    const eb_segment_range range = eb_tracking_search(tracking, p);
    eb_tracking_partition(tracking, p)->first_segment = (uint16_t)range.first;
    eb_tracking_partition(tracking, p)->last_segment = (uint16_t)range.last;
  }
  return 0;
}

eb_segment_range eb_tracking_search(const eb_tracking *tracking, int partition) {
  eb_segment_range range;
  const int64_t begin = partition * tracking->partition_bytes;
  eb_segments_cover(tracking->map, begin, begin + tracking->partition_bytes, &range.first, &range.last);
  return range;
}

int eb_tracking_num_within(const eb_tracking *tracking, int segment, int low, int high) {
  const int64_t begin = tracking->map->first_byte[segment], end = tracking->map->first_byte[segment + 1];
  const int64_t bytes = tracking->partition_bytes;
  if (bytes == 0) return high - low + 1; /* the segment is the only one */
  const int64_t first = begin / bytes > low ? begin / bytes : low;
  const int64_t last = (end - 1) / bytes < high ? (end - 1) / bytes : high;
  return last >= first ? (int)(last - first) + 1 : 0;
}

int eb_tracking_mark_several(eb_tracking *tracking, int low, int high) {
  if (!tracking->done_bits) {
    while (low <= high && eb_tracking_mark(tracking, low)) low++;
    return low;
  }
  for (int p = low, last; p <= high; p = last + 1) {
    _Atomic uint64_t *const word = &tracking->done_bits[p / 64];
    last = high / 64 > p / 64 ? p | 63 : high;
    const uint64_t bits = (UINT64_MAX >> (63 - (last - p))) << p % 64;
    const uint64_t marked = atomic_load_explicit(word, memory_order_relaxed) & bits;
    const uint64_t below = marked ? (marked & -marked) - 1 : UINT64_MAX;
    (void)atomic_fetch_or_explicit(word, bits & below, memory_order_relaxed);
    if (marked) return p - p % 64 + __builtin_ctzll(marked);
  }
  return high + 1;
}

void eb_tracking_advance(eb_tracking *tracking) {
  /* Every completed start has marked all partitions, so none is as old as the generation that is used again. */
  if (++tracking->generation == 0) tracking->generation = 1;
  if (tracking->has_bits_set)
    memset(tracking->done_bits, 0, ((size_t)tracking->num_partitions + 63) / 64 * sizeof *tracking->done_bits);
  tracking->has_bits_set = tracking->done_bits != NULL;
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
