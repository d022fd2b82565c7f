/* A receiver's MPI_Wait fails in the start whose message names memory that the two ranks share, before that message has come: its sender's
 * later starts complete all the same. The library calls the MPI by these functions, of which the receiver's fail in that start. Rank 0 writes
 * "completed N" starts into the file that is the argument: a launcher may lose what a rank has said directly before it ends the job. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTITIONS = 4, BYTES = 64, FAILING_START = 2, NUM_STARTS = 6, TAG = 7 };

static int is_failing;

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
  int (*const next)(MPI_Request *, int *, MPI_Status *) = (int (*)(MPI_Request *, int *, MPI_Status *))dlsym(RTLD_NEXT,
                                                                                                             "PMPI_Test");
  return is_failing ? MPI_ERR_OTHER : next(request, flag, status);
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status) {
  int (*const next)(MPI_Request *, MPI_Status *) = (int (*)(MPI_Request *, MPI_Status *))dlsym(RTLD_NEXT, "PMPI_Wait");
  return is_failing ? MPI_ERR_OTHER : next(request, status);
}

static void send_all(const char *path) {
  static char data[PARTITIONS * BYTES];
  MPI_Request request;
  MPI_Psend_init(data, PARTITIONS, BYTES, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  int num = 0;
  for (int start = 1; start <= NUM_STARTS; start++) {
    if (start == FAILING_START) MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&request);
    MPI_Pready_range(0, PARTITIONS - 1, request);
    num += MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
  }
  FILE *const file = fopen(path, "w");
  if (!file) MPI_Abort(MPI_COMM_WORLD, 3);
  fprintf(file, "completed %d\n", num);
  fclose(file);
  MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

static void fail_to_receive(void) {
  static char data[PARTITIONS * BYTES];
  MPI_Request request;
  int is_over = 0;
  MPI_Precv_init(data, PARTITIONS, BYTES, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int start = 1; start <= FAILING_START; start++) {
    MPI_Start(&request);
    is_failing = start == FAILING_START;
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    is_failing = 0;
    if ((code != MPI_SUCCESS) != (start == FAILING_START)) MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
  while (!is_over) {
    if (MPI_Start(&request) == MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3); /* which also makes progress */
    MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &is_over, MPI_STATUS_IGNORE);
  }
  MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) send_all(argv[1]);
  else fail_to_receive();
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Abort(MPI_COMM_WORLD, 4); /* what was sent to a receive that has failed is never received */
}
