/* Begins and ends the library in a process: configuration, the domain, what is kept, the progress thread. */
#include "partitioned/library.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "partitioned/adaptation/feedback.h"
#include "partitioned/adaptation/unread.h"
#include "partitioned/channel/channel.h"
#include "partitioned/channel/issue.h"
#include "partitioned/domain/communicator.h"
#include "partitioned/domain/domain.h"
#include "partitioned/domain/job.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/matching/matching.h"
#include "partitioned/persistence.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/thread.h"
#include "partitioned/process/world.h"
#include "partitioned/progress.h"
#include "partitioned/statistics/statistics.h"
#include "partitioned/wire/frames.h"
#include "partitioned/wire/node_direct.h"

/* How long MPI_Finalize waits for control messages that may have no receiver or no sender. */
#define PATIENCE_S 0.5

static bool is_enlisted, is_able_to_begin;

void eb_library_enlist(bool is_able) {
  eb_clock_begin();
  is_enlisted = true;
  is_able_to_begin = is_able;
  /* Data that is sent before its receiver has started is unexpected to the MPI, and libfabric's tcp provider, which Intel MPI
   * and MPICH use, stops reading from a peer that has 64 such messages: a program that starts 65 requests and only then
   * notifies their receiver would hang. The provider reads this when the MPI is initialised; a value set by the user is kept. */
  setenv("FI_TCP_MAX_SAVED", "1000000", 0);
  eb_job_enlist();
}

static int end(MPI_Comm comm, int keyval, void *value, void *extra);

/* In the MPI standard's ABI two headers of 2025, of MPICH 5.0.2 and Intel MPI 2021.18.1, have the numbers of
 * MPI_ERRORS_RETURN and MPI_ERRORS_ABORT the other way round. So the MPI is asked: the first is what files begin with (MPI
 * 4.1 section 14.7). A handler of our own does not do: after one that returns, MPICH's calls return MPI_SUCCESS. */
static MPI_Errhandler find_errors_return(void) {
#if defined(MPI_ABI)
  MPI_Errhandler of_files;
  if (PMPI_File_get_errhandler(MPI_FILE_NULL, &of_files) == MPI_SUCCESS &&
      (of_files == MPI_ERRORS_RETURN || of_files == MPI_ERRORS_ABORT))
    return of_files;
#endif
  return MPI_ERRORS_RETURN;
}

/* What this rank needs to have by itself before others rely on it. */
static bool prepare(void) {
  MPI_Group group;
  int keyval;
  eb_lock_begin();
  eb_world.errors_return = find_errors_return();
  if (PMPI_Comm_group(MPI_COMM_WORLD, &eb_world.group) != MPI_SUCCESS) return false;
  if (PMPI_Comm_group(MPI_COMM_SELF, &group) != MPI_SUCCESS) return false;
  const bool is_able = PMPI_Comm_create(MPI_COMM_SELF, group, &eb_world.self) == MPI_SUCCESS;
  PMPI_Group_free(&group);
  /* MPI_Finalize deletes the attributes of MPI_COMM_SELF before all else, the last one first (MPI 4.1 section 11.2.4):
   * so this one, the first, goes when the program's own callbacks, which may communicate, are over. */
  return is_able && PMPI_Comm_set_errhandler(eb_world.self, eb_world.errors_return) == MPI_SUCCESS &&
         PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &keyval, NULL) == MPI_SUCCESS &&
         PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL) == MPI_SUCCESS && PMPI_Comm_free_keyval(&keyval) == MPI_SUCCESS &&
         eb_communicator_begin() == MPI_SUCCESS && eb_communicator_adopt_predefined() == MPI_SUCCESS;
}

/* The lowest rank's environment applies to all: a variable set on some ranks only would break the agreement. */
static void read_config(const eb_members *members) {
  char problem[600] = "";
  for (int r = 0; r < eb_world.rank; r++)
    if (eb_members_has(members, r)) return;
  if (!eb_config_read(&eb_world.config, problem, sizeof problem)) eb_refuse_config(problem);
}

static void agree_on_segmentation(void) {
  const eb_cost *const costs[] = {&eb_world.config.intra_node, &eb_world.config.inter_node};
  for (int level = 0; level < 2; level++) {
    eb_world.agreements[level].least_adapted_bytes = eb_planner_least_bytes(costs[level]);
    eb_planner_first_numbers(costs[level], eb_world.agreements[level].first_numbers);
  }
  PMPI_Bcast(eb_world.agreements, sizeof eb_world.agreements, MPI_BYTE, 0, eb_domain.comm);
}

void eb_library_begin(void) {
  int level;
  eb_members members;
  const char *reason;
  if (!is_enlisted && !eb_job_is_whole()) return;
  PMPI_Comm_rank(MPI_COMM_WORLD, &eb_world.rank);
  PMPI_Query_thread(&level);
  eb_world.multiple = level == MPI_THREAD_MULTIPLE;
  eb_thread_begin(eb_world.multiple);
  eb_issue_begin();
  eb_world.keeps_requests = eb_is_open_mpi();
  if (!eb_job_meet(!is_enlisted || (is_able_to_begin && prepare()), &members, &reason)) {
    if (reason) fprintf(stderr, "earlybird: %s\n", reason);
    return;
  }
  read_config(&members);
  const bool begins = eb_domain_begin(&members, &eb_world.config);
  free(members.words);
  if (!begins) {
    fprintf(stderr,
            "earlybird: rank %d: a rank is out of communicators or memory; the MPI's own partitioned communication is "
            "used\n",
            eb_world.rank);
    return;
  }
  eb_persistence_begin();
  agree_on_segmentation();
  eb_clock_settle();
  eb_channels_begin();
  eb_statistics_begin();
  if (eb_world.config.progress_thread) eb_progress_thread_begin();
  eb_world.on = true;
}

/* Data leaves, because a correct program receives it. Control messages leave too, also those to this rank itself,
 * which MPICH completes only when they are received; but not the setup of a request that was never matched. Feedback
 * arrives, but not that of a transfer that failed. */
static void settle_messages(void) {
  const double begin_s = eb_now_s();
  eb_feedback_abandon();
  while (eb_send_queue_num_data() + eb_node_direct_progress() > 0 ||
         (eb_send_queue_num_control() + eb_feedback_num_expected() + eb_frames_num_unwanted() + eb_unread_progress() > 0 &&
          eb_now_s() - begin_s < PATIENCE_S)) {
    eb_send_queue_progress();
    eb_matching_progress();
    eb_matching_collect();
    eb_frames_progress();
    eb_feedback_collect();
  }
  eb_feedback_cancel();
  eb_unread_cancel();
}

/* Not in `end`: MPICH works without its locks by then. */
void eb_library_before_finalize(void) { eb_progress_thread_end(); }

static int end(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm, (void)keyval, (void)value, (void)extra;
  if (!eb_world.on) return MPI_SUCCESS;
  settle_messages();
  eb_statistics_end(eb_persistence_end());
  eb_world.on = false;
  eb_num_live = 0; /* requests that were never freed */
  eb_communicator_end();
  PMPI_Comm_free(&eb_world.self);
  PMPI_Group_free(&eb_world.group);
  PMPI_Comm_free_keyval(&eb_world.keyval);
  eb_matching_end();
  eb_frames_end();
  eb_domain_end();
  return MPI_SUCCESS;
}
