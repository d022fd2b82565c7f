/* Frees sends in their third start, which their receivers begin only then: BYTES REQUESTS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_STARTS = 3 };

int main(int argc, char **argv) {
  int rank, is_wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int bytes = atoi(argv[1]), num_requests = atoi(argv[2]);
  char *const data = malloc(bytes);
  for (int r = 0; r < num_requests; r++) {
    MPI_Request request;
    if (rank == 0) MPI_Psend_init(data, 1, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    else MPI_Precv_init(data, 1, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int s = 1; s <= NUM_STARTS; s++) {
      const int is_last = s == NUM_STARTS, value = (r * NUM_STARTS + s) % 100;
      if (rank == 0) {
        memset(data, value, bytes);
        MPI_Start(&request);
        MPI_Pready(0, request);
        if (is_last) MPI_Request_free(&request);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank == 1) MPI_Start(&request);
      if (rank == 1 || !is_last) MPI_Wait(&request, MPI_STATUS_IGNORE);
      for (int b = 0; b < bytes; b++) is_wrong |= data[b] != value;
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1) MPI_Request_free(&request);
  }
  if (is_wrong) printf("wrong data\n");
  free(data);
  MPI_Finalize();
  return is_wrong;
}
