/* Spawned processes: partitioned_spawn starts two more of itself. Within each world transfers are ours, across two worlds
 * they are the MPI's own or refused. */
#include <stdio.h>

#include "case.h"
#include "report.h"

enum { NUM_CHILDREN = 2, SECONDS = 30 };

/* These stand before the MPI's own, to which libearlybird turns for communicators that are not its own. They go no
 * further: merely made and freed there, requests of Open MPI 5.0.11 leave ranks hanging in the next collective call. */
static int num_own;

int PMPI_Psend_init(const void *buffer, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype type, int peer, int tag,
                    MPI_Comm comm, MPI_Info info, MPI_Request *request) {
  (void)buffer, (void)partitions, (void)count, (void)type, (void)peer, (void)tag, (void)comm, (void)info, (void)request;
  num_own++;
  return MPI_ERR_UNSUPPORTED_OPERATION;
}

int PMPI_Precv_init(void *buffer, int partitions, EB_PARTITIONED_COUNT count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                    MPI_Info info, MPI_Request *request) {
  return PMPI_Psend_init(buffer, partitions, count, type, peer, tag, comm, info, request);
}

/* Twelve starts: a plan is made and followed meanwhile. */
static void transfers_are_ours(MPI_Comm comm) {
  const int before = num_own;
  for (int tag = 3; tag <= 30000; tag *= 10000)
    ring_run(&(struct ring){.comm = comm,
                            .sends = {4, 40000, MPI_BYTE},
                            .receives = {2, 80000, MPI_BYTE},
                            .tag = tag,
                            .iterations = 12,
                            .order = REVERSE});
  EXPECT(num_own == before, "%d requests within one world were made by the MPI", num_own - before);
}

static void transfers_are_not_ours(MPI_Comm comm) {
  int data = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const int before = num_own;
  MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  const int sends = MPI_Psend_init(&data, 1, 1, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &request);
  const int receives = MPI_Precv_init(&data, 1, 1, MPI_INT, 0, 5, comm, MPI_INFO_NULL, &request);
  EXPECT(num_own == before + 2, "the MPI was called %d times", num_own - before);
  EXPECT(error_class(sends) == MPI_ERR_UNSUPPORTED_OPERATION && receives == sends, "the codes are %d and %d", sends, receives);
}

static void end_case(void) {
  if (!report_case_end()) MPI_Abort(MPI_COMM_WORLD, 1); /* the other world would wait for us */
}

static void begin_case(const char *what, bool is_child) {
  char name[100];
  snprintf(name, sizeof name, "%s_%s", is_child ? "children" : "parents", what);
  report_case_begin(name, SECONDS);
}

int main(int argc, char **argv) {
  MPI_Comm reports, inter, merged, own;
  int rank = 0, num_parents = 0, sum = 0;
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS || MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
      MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || MPI_Comm_dup(MPI_COMM_WORLD, &reports) != MPI_SUCCESS ||
      MPI_Comm_get_parent(&inter) != MPI_SUCCESS)
    return 1;
  report_begin(reports);
  const bool is_child = inter != MPI_COMM_NULL;

  begin_case("deliver_within_their_world", is_child);
  if (!is_child) {
    transfers_are_ours(MPI_COMM_WORLD);
    char *words[] = {"child", NULL};
    MPI(MPI_Comm_spawn(argv[0], words, NUM_CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE));
  }
  transfers_are_ours(MPI_COMM_WORLD);
  end_case();

  begin_case("are_left_to_the_MPI_between_worlds", is_child);
  MPI(MPI_Intercomm_merge(inter, is_child, &merged));
  MPI(is_child ? MPI_Comm_remote_size(inter, &num_parents) : MPI_Comm_size(MPI_COMM_WORLD, &num_parents));
  transfers_are_not_ours(inter);
  transfers_are_not_ours(merged);
  end_case();

  /* What is not partitioned goes on as ever, and so do parts of the merged communicator that are of one world. */
  begin_case("deliver_beside_another_world", is_child);
  MPI(MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, merged));
  EXPECT(sum == num_parents + NUM_CHILDREN, "%d ranks are in the merged communicator", sum);
  MPI(MPI_Comm_split(merged, is_child, 0, &own));
  transfers_are_ours(own);
  transfers_are_ours(MPI_COMM_WORLD);
  MPI(MPI_Comm_free(&own));
  MPI(MPI_Comm_free(&merged));
  MPI(MPI_Comm_disconnect(&inter));
  transfers_are_ours(MPI_COMM_WORLD);
  end_case();

  begin_case("end", is_child);
  if (MPI_Comm_free(&reports) != MPI_SUCCESS || MPI_Finalize() != MPI_SUCCESS) return 1;
  if (rank == 0) printf("ok %s_end (0 s)\n", is_child ? "children" : "parents");
  return 0;
}
