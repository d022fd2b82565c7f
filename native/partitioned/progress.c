/* The progress thread: a probe of the domain every few microseconds while requests exist. */
#include "partitioned/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "partitioned/adaptation/feedback.h"
#include "partitioned/channel/requests.h"
#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/matching/matching.h"
#include "partitioned/process/world.h"
#include "partitioned/wire/frames.h"

/* Between polls: short against the transfer of the segments that are worth sending early (64 KiB take 5 us). */
#define BUSY_NS 5000
/* While no request exists. */
#define IDLE_NS 1000000

static pthread_t thread;
static atomic_bool running;

static void *poll_mpi(void *unused) {
  (void)unused;
  prctl(PR_SET_TIMERSLACK, 1000UL); /* else Linux adds 50 us to every sleep */
  while (atomic_load(&running)) {
    const int lives = __atomic_load_n(&eb_num_live, __ATOMIC_RELAXED) > 0;
    if (lives) {
      int flag;
      eb_send_queue_progress();
      eb_matching_progress();
      eb_matching_collect();
      eb_frames_progress();
      eb_feedback_collect();
      for (int lane = 0; lane < eb_domain.num_lanes; lane++)
        PMPI_Iprobe(MPI_ANY_SOURCE, 0, eb_domain.lanes[lane], &flag, MPI_STATUS_IGNORE);
    }
    nanosleep(&(struct timespec){0, lives ? BUSY_NS : IDLE_NS}, NULL);
  }
  return NULL;
}

void eb_progress_thread_begin(void) {
  if (!eb_world.multiple) {
    if (eb_world.rank == 0) fprintf(stderr, "earlybird: no progress thread: this MPI does not provide MPI_THREAD_MULTIPLE\n");
    return;
  }
  atomic_store(&running, true);
  const int error = pthread_create(&thread, NULL, poll_mpi, NULL);
  if (error) {
    atomic_store(&running, false);
    fprintf(stderr, "earlybird: rank %d has no progress thread (%s)\n", eb_world.rank, strerror(error));
  }
}

void eb_progress_thread_end(void) {
  if (!atomic_exchange(&running, false)) return;
  pthread_join(thread, NULL);
}
