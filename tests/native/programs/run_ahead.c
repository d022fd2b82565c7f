/* The sender is far ahead of the receiver: it starts NUM requests of SIZE bytes, makes all ready and sends "go"; the receiver
 * starts only then. run_ahead NUM SIZE prints "delivered". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  int rank, go = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int num = atoi(argv[1]), size = atoi(argv[2]);
  char *data = malloc((size_t)num * size);
  MPI_Request *requests = malloc(num * sizeof *requests);
  for (int r = 0; r < num; r++) {
    char *at = data + (size_t)r * size;
    for (int k = 0; k < size; k++) at[k] = rank ? 0 : (char)(r + k);
    if (rank == 0) MPI_Psend_init(at, 1, size, MPI_BYTE, 1, r, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[r]);
    else MPI_Precv_init(at, 1, size, MPI_BYTE, 0, r, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[r]);
  }
  if (rank == 0) {
    MPI_Startall(num, requests);
    for (int r = 0; r < num; r++) MPI_Pready(0, requests[r]);
    MPI_Send(&go, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&go, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Startall(num, requests);
  }
  MPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
  for (int r = 0; rank == 1 && r < num; r++)
    for (int k = 0; k < size; k++)
      if (data[(size_t)r * size + k] != (char)(r + k)) return printf("wrong data\n"), MPI_Abort(MPI_COMM_WORLD, 3);
  for (int r = 0; r < num; r++) MPI_Request_free(&requests[r]);
  if (rank == 1) printf("delivered\n");
  MPI_Finalize();
  return 0;
}
