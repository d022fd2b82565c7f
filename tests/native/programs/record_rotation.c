/* In every step each rank sends to another partner than in the step before. */
#include <mpi.h>

enum { STEPS = 600 };

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int k = 0; k < STEPS; k++) {
    const int shift = 1 + k % (size - 1);
    char sent[64], received[64];
    MPI_Request requests[2];
    MPI_Irecv(received, 64, MPI_CHAR, (rank + size - shift) % size, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, 64, MPI_CHAR, (rank + shift) % size, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  return MPI_Finalize();
}
