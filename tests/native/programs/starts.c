/* Starts one request so many times: BYTES PARTITIONS STARTS, all partitions ready at once. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int bytes = atoi(argv[1]), partitions = atoi(argv[2]), starts = atoi(argv[3]);
  char *const data = calloc(bytes, 1);
  if (rank == 0)
    MPI_Psend_init(data, partitions, bytes / partitions, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data, partitions, bytes / partitions, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int s = 0; s < starts; s++) {
    MPI_Start(&request);
    if (rank == 0) MPI_Pready_range(0, partitions - 1, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Request_free(&request);
  free(data);
  MPI_Finalize();
  return 0;
}
