/* Which partitions of a transfer are ready or have arrived, and which segments they complete. Uses no MPI. */
#ifndef EB_TRACKING_H
#define EB_TRACKING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partitioned/process/thread.h"
#include "partitioned/segmentation/segment.h"

/* One cache line each, to avoid false sharing between threads on different segments.
 *
 * A locked instruction takes as long as all else in MPI_Pready, and below MPI_THREAD_MULTIPLE nearly all programs call it by the
 * thread that has started the request. That thread, the owner of the start, counts by plain stores; other threads count by
 * atomic subtractions. A segment is complete when as many are counted by the owner as the others have left. An owner that has
 * just stored its number may not see what another thread counts at the same moment; so that thread makes the owner's number
 * visible (eb_thread_fence_owner), and one of the two finds the segment complete, or both: then one of them claims it. */
typedef struct {
  _Alignas(64) atomic_int num_unready; /* partitions of a sender that are not ready yet, but for those that its owner counted */
  atomic_int num_owned;                /* counted by the owner of the start */
  int num_partitions;                  /* that overlap the segment */
  atomic_bool has_arrived;             /* a test has found it complete */
} eb_segment_state;

/* Small, because a request may have thousands of partitions. */
typedef struct {
  uint16_t first_segment, last_segment;
  _Atomic uint16_t done_at; /* the start in which it became ready, or was unpacked */
} eb_partition_state;

typedef struct {
  int first, last;
} eb_segment_range;

/* With more partitions, a request takes one bit of each instead of its state, and the system provides that memory when the bits
 * are written: MPI allows 2^31 - 1 partitions, of which most may have no bytes. */
#define EB_MAX_PARTITION_STATES (1 << 20)

/* The members belong to tracking.h and tracking.c. */
typedef struct {
  int num_partitions, num_segments;
  bool is_searched; /* the states do not contain the segments of the partitions: see eb_tracking_range */
  uint16_t generation;        /* of the current start, never 0 */
  unsigned partition_stride;
  char *partitions;           /* [num_partitions] of stride partition_stride; NULL: too many */
  eb_segment_state *segments; /* [num_segments] */
  const void *owner;          /* the thread that counts by plain stores in this start, or NULL */
  atomic_int num_beside;      /* threads that are counting beside an owner */
  _Atomic uint64_t *done_bits; /* [num_partitions / 64], if there are no states: is it ready, or unpacked, in this start? */
  bool has_bits_set;
  const eb_segments *map; /* the wire's */
  int64_t partition_bytes;
} eb_tracking;

/* All of these return 0, or -1 when memory is short. `is_spread`: each partition has a separate cache line. `is_marked`:
 * partitions will be marked, or set unpacked. */
int eb_tracking_begin(eb_tracking *tracking, int num_partitions, bool is_spread, bool is_marked);
void eb_tracking_end(eb_tracking *tracking);
/* Sets which partitions each segment holds. No segment has arrived. The pointer must stay valid. */
int eb_tracking_map(eb_tracking *tracking, const eb_segments *segments, int64_t partition_bytes);

/* A new start: no partition is ready or unpacked. */
void eb_tracking_advance(eb_tracking *tracking);
/* And no segment is complete or has arrived. `owner`: eb_thread_owner(), or NULL. */
void eb_tracking_reset(eb_tracking *tracking, const void *owner);

/* Are all partitions ready? */
bool eb_tracking_is_ready(const eb_tracking *tracking);

static inline eb_partition_state *eb_tracking_partition(const eb_tracking *tracking, int partition) {
  return (eb_partition_state *)(tracking->partitions + (size_t)partition * tracking->partition_stride);
}

/* Are there too many partitions for a state of each, or too many segments for the 16 bits of a state? Then partitions are marked and
 * counted by the functions for several partitions. */
static inline bool eb_tracking_is_searched(const eb_tracking *tracking) { return __builtin_expect(tracking->is_searched, 0); }

eb_segment_range eb_tracking_search(const eb_tracking *tracking, int partition);

/* The segments that a partition overlaps, if they are stored. */
static inline eb_segment_range eb_tracking_range_of(const eb_partition_state *state) {
  return (eb_segment_range){state->first_segment, state->last_segment};
}

static inline eb_segment_range eb_tracking_range(const eb_tracking *tracking, int partition) {
  return eb_tracking_is_searched(tracking) ? eb_tracking_search(tracking, partition)
                                           : eb_tracking_range_of(eb_tracking_partition(tracking, partition));
}

/* The number of the partitions low .. high that overlap a segment. */
int eb_tracking_num_within(const eb_tracking *tracking, int segment, int low, int high);

/* Marks the partitions low .. high of a sender; returns the first that was marked before in this start, where it ends, or else
 * high + 1. */
int eb_tracking_mark_several(eb_tracking *tracking, int low, int high);

/* Counts ready partitions of a segment, in a start that has an owner; true for the last ones. */
bool eb_tracking_count_with_owner(eb_tracking *tracking, int segment, int num);

/* The same in any start. */
static inline bool eb_tracking_count(eb_tracking *tracking, int segment, int num) {
  eb_segment_state *const state = &tracking->segments[segment];
  if (tracking->owner) return eb_tracking_count_with_owner(tracking, segment, num);
  if (num == state->num_partitions) { /* no other thread has any */
    atomic_store_explicit(&state->num_unready, 0, memory_order_release);
    return true;
  }
  return atomic_fetch_sub_explicit(&state->num_unready, num, memory_order_acq_rel) == num;
}

/* Marks a partition of a sender by its state; false if it was marked before in this start. */
static inline bool eb_tracking_mark(const eb_tracking *tracking, eb_partition_state *state) {
  /* Not an atomic exchange: two threads that make one partition ready at once are two errors already. */
  if (__builtin_expect(atomic_load_explicit(&state->done_at, memory_order_relaxed) == tracking->generation, 0)) return false;
  atomic_store_explicit(&state->done_at, tracking->generation, memory_order_relaxed);
  return true;
}

/* Does this thread own the start? Then it counts by eb_tracking_count_owned, in 1 ns instead of 5 to 10. */
static inline bool eb_tracking_is_owned(const eb_tracking *tracking) { return tracking->owner == eb_thread_id(); }

/* Counts a ready partition of a segment; false unless it may have been the last one: then eb_tracking_claim is to be asked. */
static inline bool eb_tracking_count_owned(eb_tracking *tracking, int segment) {
  eb_segment_state *const state = &tracking->segments[segment];
  const int num = atomic_load_explicit(&state->num_owned, memory_order_relaxed) + 1;
  atomic_store_explicit(&state->num_owned, num, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst); /* the compiler keeps this order, and the other thread's fence makes it hold */
  return atomic_load_explicit(&state->num_unready, memory_order_acquire) == num;
}

/* Is the segment complete, and has no other thread found it? */
bool eb_tracking_claim(eb_tracking *tracking, int segment);

static inline bool eb_tracking_has_arrived(const eb_tracking *tracking, int segment) {
  return atomic_load_explicit(&tracking->segments[segment].has_arrived, memory_order_acquire);
}

/* A segment has arrived; false if that was known. */
static inline bool eb_tracking_set_arrived(eb_tracking *tracking, int segment) {
  return !atomic_exchange_explicit(&tracking->segments[segment].has_arrived, true, memory_order_release);
}

/* Have all segments of a partition arrived? */
static inline bool eb_tracking_is_covered(const eb_tracking *tracking, int partition) {
  const eb_segment_range range = eb_tracking_range(tracking, partition);
  for (int s = range.first; s <= range.last; s++)
    if (!eb_tracking_has_arrived(tracking, s)) return false;
  return true;
}

/* Has a partition of a receiver been unpacked in this start? */
static inline bool eb_tracking_is_unpacked(const eb_tracking *tracking, int partition) {
  if (tracking->done_bits) {
    const uint64_t word = atomic_load_explicit(&tracking->done_bits[partition / 64], memory_order_acquire);
    return word >> partition % 64 & 1;
  }
  return atomic_load_explicit(&eb_tracking_partition(tracking, partition)->done_at, memory_order_acquire) == tracking->generation;
}

static inline void eb_tracking_set_unpacked(eb_tracking *tracking, int partition) {
  if (tracking->done_bits) {
    (void)atomic_fetch_or_explicit(&tracking->done_bits[partition / 64], UINT64_C(1) << partition % 64, memory_order_release);
    return;
  }
  atomic_store_explicit(&eb_tracking_partition(tracking, partition)->done_at, tracking->generation, memory_order_release);
}

#endif
