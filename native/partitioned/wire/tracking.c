/* Allocates and resets the states of partitions and segments. */
#include "partitioned/wire/tracking.h"

#include <sched.h>
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

static void await_threads(const eb_tracking *tracking) {
  while (atomic_load(&tracking->num_beside) > 0) sched_yield();
}

static void unmap(eb_tracking *tracking) {
  await_threads(tracking);
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
    while (low <= high && eb_tracking_mark(tracking, eb_tracking_partition(tracking, low))) low++;
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

void eb_tracking_reset(eb_tracking *tracking, const void *owner) {
  await_threads(tracking);
  tracking->owner = owner;
  for (int s = 0; s < tracking->num_segments; s++) {
    eb_segment_state *const state = &tracking->segments[s];
    atomic_store_explicit(&state->num_unready, state->num_partitions, memory_order_relaxed);
    atomic_store_explicit(&state->num_owned, 0, memory_order_relaxed);
    atomic_store_explicit(&state->has_arrived, false, memory_order_relaxed);
  }
}

/* The owner has counted as many as the other threads have left. */
static bool claim(eb_segment_state *state, int num_left) {
  enum { CLAIMED = -1 };
  if (num_left == state->num_partitions) return true; /* no other thread has counted */
  return atomic_compare_exchange_strong(&state->num_unready, &num_left, CLAIMED);
}

bool eb_tracking_claim(eb_tracking *tracking, int segment) {
  eb_segment_state *const state = &tracking->segments[segment];
  return claim(state, atomic_load_explicit(&state->num_owned, memory_order_relaxed));
}

/* The next start has no owner, because this thread ends owners before it counts. It is waited for, because it reads the state
 * after it has counted, when the segment may be complete. */
static bool count_beside_owner(eb_tracking *tracking, eb_segment_state *state, int num) {
  atomic_fetch_add(&tracking->num_beside, 1);
  eb_thread_end_owners();
  const int num_left = atomic_fetch_sub(&state->num_unready, num) - num;
  eb_thread_fence_owner();
  const bool is_last = atomic_load_explicit(&state->num_owned, memory_order_acquire) == num_left && claim(state, num_left);
  atomic_fetch_sub(&tracking->num_beside, 1);
  return is_last;
}

bool eb_tracking_count_with_owner(eb_tracking *tracking, int segment, int num) {
  eb_segment_state *const state = &tracking->segments[segment];
  if (!eb_tracking_is_owned(tracking)) return count_beside_owner(tracking, state, num);
  const int num_left = atomic_fetch_sub_explicit(&state->num_unready, num, memory_order_acq_rel) - num;
  return atomic_load_explicit(&state->num_owned, memory_order_relaxed) == num_left && claim(state, num_left);
}

static bool is_ready(const eb_segment_state *state) {
  const int num_owned = atomic_load_explicit(&state->num_owned, memory_order_acquire);
  return atomic_load_explicit(&state->num_unready, memory_order_acquire) <= num_owned;
}

bool eb_tracking_is_ready(const eb_tracking *tracking) {
  for (int s = 0; s < tracking->num_segments; s++)
    if (!is_ready(&tracking->segments[s])) return false;
  return true;
}
