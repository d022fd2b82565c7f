/* Begins and ends the library's work in a process: settings, shadows, calibration, the progress thread. */
#include "partitioned/world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "partitioned/calibrate.h"
#include "partitioned/communicator.h"
#include "partitioned/loaded.h"
#include "partitioned/matching.h"
#include "partitioned/outbox.h"
#include "partitioned/progress.h"
#include "partitioned/record.h"

/* How long MPI_Finalize waits for control messages that may have no receiver or no sender. */
#define PATIENCE_S 0.5

eb_world_state eb_world = {.self = MPI_COMM_NULL};

static pthread_mutex_t lock;

void eb_lock(void) {
  if (eb_world.multiple) pthread_mutex_lock(&lock);
}

void eb_unlock(void) {
  if (eb_world.multiple) pthread_mutex_unlock(&lock);
}

static void make_lock(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  /* MPI calls our attribute callback from within calls that we make under the lock. */
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static void find_nodes(void) {
  char mine[256] = {0};
  gethostname(mine, sizeof mine - 1);
  char *names = calloc((size_t)eb_world.size, sizeof mine);
  eb_world.node_of_rank = calloc((size_t)eb_world.size, sizeof *eb_world.node_of_rank);
  if (!names || !eb_world.node_of_rank) PMPI_Abort(MPI_COMM_WORLD, 1);
  PMPI_Allgather(mine, sizeof mine, MPI_BYTE, names, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  for (int r = 0; r < eb_world.size; r++) {
    int same = 0;
    /* Ranks of a node are mostly neighbours: the search is short where there are many. */
    if (r > 0 && memcmp(names + (size_t)r * sizeof mine, names + (size_t)(r - 1) * sizeof mine, sizeof mine) == 0)
      same = eb_world.node_of_rank[r - 1];
    else
      while (memcmp(names + (size_t)r * sizeof mine, names + (size_t)same * sizeof mine, sizeof mine) != 0) same++;
    eb_world.node_of_rank[r] = same;
  }
  free(names);
}

/* Rank 0's environment for everybody: a variable that reached some ranks only would break the agreement. */
static void agree_on_settings(void) {
  char problem[600] = "";
  int sound = 1;
  if (eb_world.rank == 0) sound = eb_settings_read(&eb_world.settings, problem, sizeof problem);
  if (eb_world.rank == 0 && !sound) fprintf(stderr, "earlybird: %s\n", problem);
  PMPI_Bcast(&sound, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!sound) PMPI_Abort(MPI_COMM_WORLD, 2);
  PMPI_Bcast(&eb_world.settings, sizeof eb_world.settings, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void eb_world_begin(void) {
  int level, uses = eb_loaded_code_is_partitioned(), anybody = 0;
  eb_clock_begin();
  if (PMPI_Allreduce(&uses, &anybody, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS || !anybody) return;
  PMPI_Comm_rank(MPI_COMM_WORLD, &eb_world.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &eb_world.size);
  agree_on_settings();
  PMPI_Query_thread(&level);
  make_lock();
  eb_world.multiple = level == MPI_THREAD_MULTIPLE;
  find_nodes();
  MPI_Group group;
  if (eb_communicator_begin() != MPI_SUCCESS || PMPI_Comm_group(MPI_COMM_SELF, &group) != MPI_SUCCESS ||
      PMPI_Comm_create(MPI_COMM_SELF, group, &eb_world.self) != MPI_SUCCESS ||
      PMPI_Comm_set_errhandler(eb_world.self, MPI_ERRORS_RETURN) != MPI_SUCCESS) {
    fprintf(stderr, "earlybird: rank %d has no communicator left for partitioned communication; the MPI's own is used\n",
            eb_world.rank);
    return;
  }
  PMPI_Group_free(&group);
  eb_communicator_adopt(MPI_COMM_WORLD);
  eb_communicator_adopt(MPI_COMM_SELF);
  eb_view *world = eb_communicator_view(MPI_COMM_WORLD);
  if (world)
    eb_calibrate(world->shadow->comm, eb_world.node_of_rank, eb_world.rank, eb_world.size, &eb_world.settings.intra_node,
                 &eb_world.settings.inter_node);
  eb_clock_settle();
  eb_record_begin();
  if (eb_world.settings.progress_thread) eb_progress_thread_begin();
  eb_world.on = true;
}

/* Data leaves, because a correct program receives it. Control messages leave too, also those to this rank itself,
 * which MPICH completes only when they are received; but not the setup of a request that was never matched. Reports
 * come, but not those of a transfer that failed. */
static void settle_messages(void) {
  const double begin_s = eb_now_s();
  eb_matching_abandon_reports();
  while (eb_outbox_num_data() > 0 ||
         (eb_outbox_num_control() + eb_matching_num_expected_reports() > 0 && eb_now_s() - begin_s < PATIENCE_S)) {
    eb_outbox_progress();
    eb_matching_progress_all();
  }
  eb_matching_cancel_reports();
}

void eb_world_end(void) {
  if (!eb_world.on) return;
  eb_progress_thread_end();
  settle_messages();
  eb_shadows_sweep();
  eb_record_end();
  eb_world.on = false;
  eb_num_live = 0; /* requests that were never freed */
  eb_communicator_end();
  PMPI_Comm_free(&eb_world.self);
  PMPI_Comm_free_keyval(&eb_world.keyval);
  free(eb_world.node_of_rank);
  eb_world.node_of_rank = NULL;
}
