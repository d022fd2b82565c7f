/* A receiver copies a long transfer in MPI_Wait, without its sender's help: prints "calls N", how often it calls the MPI meanwhile. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 64 << 20, NUM_STARTS = 3 };

static int num_calls;

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
  static int (*next)(int, int, MPI_Comm, int *, MPI_Status *);
  if (!next) next = (int (*)(int, int, MPI_Comm, int *, MPI_Status *))dlsym(RTLD_NEXT, "PMPI_Iprobe");
  num_calls++;
  return next(source, tag, comm, flag, status);
}

int main(int argc, char **argv) {
  int rank;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char *const data = calloc(BYTES, 1);
  if (rank == 0) MPI_Psend_init(data, 1, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data, 1, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int s = 1; s <= NUM_STARTS; s++) {
    const int is_last = s == NUM_STARTS;
    if (rank == 0) {
      MPI_Start(&request);
      MPI_Pready(0, request);
    }
    if (is_last) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      MPI_Start(&request);
      num_calls = 0;
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (is_last) printf("calls %d\n", num_calls);
    }
    if (is_last) MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  free(data);
  MPI_Finalize();
  return 0;
}
