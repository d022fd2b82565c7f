/* Rank r sends three messages of 1000 (r + 1) bytes to the next rank. The even ranks and the odd ranks have a
 * communicator of their own, in which the higher one is rank 0 and sends 40 bytes to the other one. */
#include <mpi.h>

int main(int argc, char **argv) {
  static char sent[4000], received[4000];
  int rank, size, half_rank;
  MPI_Comm half;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_rank(half, &half_rank);
  for (int i = 0; i < 3; i++) {
    MPI_Request requests[2];
    MPI_Irecv(received, 4000, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, 1000 * (rank + 1), MPI_BYTE, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  if (half_rank == 0) {
    MPI_Send(sent, 5, MPI_DOUBLE, 1, 2, half);
  } else if (half_rank == 1) {
    MPI_Recv(received, 5, MPI_DOUBLE, 0, 2, half, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
}
