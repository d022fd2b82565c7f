/* Partitioned transfers on a communicator of a session, or on what is made of one: the first argument says how. With a second
 * argument the program calls MPI_Finalize after the first of three starts; with `alone` it never calls MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { PARTITIONS = 4, STARTS = 3, TAG = 1 };

static int is(const char *how, const char *name) { return strcmp(how, name) == 0; }

static MPI_Comm made_of(MPI_Comm parent, MPI_Group group, const char *how) {
  MPI_Comm made = parent, half, inter;
  int rank;
  if (is(how, "split")) MPI_Comm_split(parent, 0, 0, &made);
  if (is(how, "duplicate")) MPI_Comm_dup(parent, &made);
  if (is(how, "group")) MPI_Comm_create_group(parent, group, 3, &made);
  if (is(how, "merged")) {
    MPI_Comm_rank(parent, &rank);
    MPI_Comm_split(parent, rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, parent, 1 - rank % 2, 3, &inter);
    MPI_Intercomm_merge(inter, 0, &made);
  }
  return made;
}

int main(int argc, char **argv) {
  const char *how = argv[1];
  const int has_world = !is(how, "alone");
  MPI_Session session;
  MPI_Group group;
  MPI_Comm parent, comm;
  MPI_Request both[2];
  int rank, size, sent[PARTITIONS], received[PARTITIONS], num_right = 0;
  if (has_world) MPI_Init(&argc, &argv);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "earlybird.tests.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &parent);
  comm = made_of(parent, group, how);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int before = (rank + size - 1) % size;
  MPI_Psend_init(sent, PARTITIONS, 1, MPI_INT, (rank + 1) % size, TAG, comm, MPI_INFO_NULL, &both[0]);
  MPI_Precv_init(received, PARTITIONS, 1, MPI_INT, before, TAG, comm, MPI_INFO_NULL, &both[1]);
  for (int start = 0; start < STARTS; start++) {
    if (start == 1 && argc > 2) MPI_Finalize();
    memset(received, -1, sizeof received);
    for (int p = 0; p < PARTITIONS; p++) sent[p] = 100 * rank + 10 * start + p;
    MPI_Startall(2, both);
    MPI_Pready_range(0, PARTITIONS - 1, both[0]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    for (int p = 0; p < PARTITIONS; p++) num_right += received[p] == 100 * before + 10 * start + p;
  }
  printf("right %d\n", num_right);
  fflush(stdout);
  MPI_Request_free(&both[0]);
  MPI_Request_free(&both[1]);
  if (comm != parent) MPI_Comm_free(&comm);
  MPI_Comm_free(&parent);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  if (has_world && argc <= 2) MPI_Finalize();
  return 0;
}
