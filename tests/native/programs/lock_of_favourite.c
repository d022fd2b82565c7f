/* Threads that enter the MPI and complete segments below MPI_THREAD_MULTIPLE: lock_of_favourite THREADS ROUNDS
 *
 * In each round the main thread, which locks by plain stores at first, is joined by others at some moment. Fails unless one
 * thread at a time is inside, and every segment is sent. */
#include <pthread.h>
#include <stdlib.h>

#include "partitioned/channel/issue.h"
#include "partitioned/channel/send.h"
#include "partitioned/domain/domain.h"
#include "partitioned/process/world.h"
#include "partitioned/statistics/statistics.h"
#include "threads_meet.h"

enum { NUM_SEGMENTS = 12 };

eb_world_state eb_world;
eb_domain_state eb_domain;
bool eb_statistics_on;

static int num_rounds;
static eb_channel channel;
static atomic_int num_inside, num_sent;
static long num_entered; /* by whoever is inside */

static void be_inside(void) {
  if (atomic_fetch_add_explicit(&num_inside, 1, memory_order_relaxed) != 0) fail("two threads are inside");
  for (volatile int wait = num_entered++ % 8 ? 0 : 1500; wait > 0;) wait = wait - 1; /* at times for longer than a barrier takes */
  atomic_fetch_sub_explicit(&num_inside, 1, memory_order_relaxed);
}

void eb_statistics_lane_taken(int lane) { (void)lane; }

bool eb_channel_send(eb_channel *of, int segment) {
  (void)of, (void)segment;
  be_inside();
  return atomic_fetch_add(&num_sent, 1) + 1 == num_threads * NUM_SEGMENTS;
}

static void work(int round, int thread) {
  unsigned seed = (unsigned)(round * MAX_THREADS + thread);
  for (int wait = thread ? rand_r(&seed) % 200 : 0; wait > 0; wait--) atomic_signal_fence(memory_order_seq_cst);
  for (int s = 0; s < NUM_SEGMENTS; s++) {
    if (rand_r(&seed) % 2) {
      eb_mpi_enter();
      be_inside();
      eb_mpi_leave();
    }
    eb_issue(&channel, s);
  }
}

static void *enter(void *index) {
  for (int round = 0; round < num_rounds; round++) {
    meet();
    work(round, (int)(intptr_t)index);
    meet();
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[MAX_THREADS];
  if (argc != 3 || (num_threads = atoi(argv[1])) > MAX_THREADS) return 2;
  num_rounds = atoi(argv[2]);
  for (intptr_t t = 1; t < num_threads; t++) pthread_create(&threads[t], NULL, enter, (void *)t);
  for (int round = 0; round < num_rounds; round++) {
    eb_thread_begin(false);
    eb_issue_begin();
    eb_mpi_enter();
    eb_issue_opened(&channel);
    eb_mpi_leave();
    atomic_store(&num_sent, 0);
    meet();
    work(round, 0);
    meet();
    if (atomic_load(&num_sent) != num_threads * NUM_SEGMENTS) fail("a segment is not sent");
    if (eb_issue_is_open()) fail("a start seems to be open");
  }
  for (int t = 1; t < num_threads; t++) pthread_join(threads[t], NULL);
}
