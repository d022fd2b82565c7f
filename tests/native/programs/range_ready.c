/* A partitioned transfer of a rank to itself, of as many partitions of a byte as the argument says, ready in one call. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  const int num = atoi(argv[1]);
  MPI_Request requests[2];
  MPI_Init(&argc, &argv);
  char *const from = calloc((size_t)num, 1), *const to = calloc((size_t)num, 1);
  MPI_Psend_init(from, num, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Precv_init(to, num, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Pready_range(0, num - 1, requests[0]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Finalize();
  free(from);
  free(to);
  return 0;
}
