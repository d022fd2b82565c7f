/* Threads that count the partitions of shared segments, one of them as their owner: count_beside_owner THREADS STARTS
 *
 * Each start gives every partition to a thread at random. Fails unless each segment is found complete exactly once, after its
 * last partition was counted. */
#include <pthread.h>
#include <stdlib.h>

#include "partitioned/wire/tracking.h"
#include "threads_meet.h"

enum { NUM_PARTITIONS = 24, NUM_SEGMENTS = 5 };

static int num_starts;
static eb_tracking tracking;
static int thread_of[NUM_PARTITIONS];
static atomic_int num_marked[NUM_SEGMENTS], num_completed[NUM_SEGMENTS];

static void complete(int segment) {
  atomic_fetch_add(&num_completed[segment], 1);
  if (atomic_load(&num_marked[segment]) < tracking.segments[segment].num_partitions) fail("a segment is complete too early");
}

static void mark(int partition) {
  eb_partition_state *const state = eb_tracking_partition(&tracking, partition);
  if (!eb_tracking_mark(&tracking, state)) fail("a partition seems to be marked");
  const eb_segment_range range = eb_tracking_range_of(state);
  for (int s = range.first; s <= range.last; s++) atomic_fetch_add_explicit(&num_marked[s], 1, memory_order_relaxed);
  for (int s = range.first; s <= range.last; s++) {
    const bool is_last = eb_tracking_is_owned(&tracking) && partition % 2
                             ? eb_tracking_count_owned(&tracking, s) && eb_tracking_claim(&tracking, s)
                             : eb_tracking_count(&tracking, s, 1);
    if (is_last) complete(s);
  }
}

static void mark_own(int thread) {
  for (int p = 0; p < NUM_PARTITIONS; p++)
    if (thread_of[p] == thread) mark(p);
}

static void *enter(void *index) {
  for (int start = 0; start < num_starts; start++) {
    meet();
    mark_own((int)(intptr_t)index);
    meet();
  }
  return NULL;
}

static void begin_start(unsigned *seed) {
  const int least = rand_r(seed) % num_threads; /* the owner has all partitions in some starts, and none in others */
  for (int p = 0; p < NUM_PARTITIONS; p++) thread_of[p] = least + rand_r(seed) % (num_threads - least);
  eb_tracking_advance(&tracking);
  eb_tracking_reset(&tracking, eb_thread_id());
  for (int s = 0; s < NUM_SEGMENTS; s++) num_marked[s] = num_completed[s] = 0;
}

int main(int argc, char **argv) {
  pthread_t threads[MAX_THREADS];
  unsigned seed = 1;
  /* Segments end within partitions, so that partitions belong to two of them. */
  int64_t first_byte[NUM_SEGMENTS + 1] = {0, 10, 33, 34, 90, 4 * NUM_PARTITIONS};
  const eb_segments segments = {NUM_SEGMENTS, first_byte};
  if (argc != 3 || (num_threads = atoi(argv[1])) > MAX_THREADS) return 2;
  num_starts = atoi(argv[2]);
  if (eb_tracking_begin(&tracking, NUM_PARTITIONS, false, true) != 0 || eb_tracking_map(&tracking, &segments, 4) != 0) return 3;
  for (intptr_t t = 1; t < num_threads; t++) pthread_create(&threads[t], NULL, enter, (void *)t);
  for (int start = 0; start < num_starts; start++) {
    begin_start(&seed);
    meet();
    mark_own(0);
    meet();
    for (int s = 0; s < NUM_SEGMENTS; s++)
      if (num_completed[s] != 1) fail("a segment is not complete exactly once");
    if (!eb_tracking_is_ready(&tracking)) fail("not all partitions are ready");
  }
  for (int t = 1; t < num_threads; t++) pthread_join(threads[t], NULL);
  eb_tracking_end(&tracking);
}
