/* Rank r sends r + 1 messages of 1000 (r + 1) bytes and one of 0 bytes to the next rank; then an MPI_Allreduce. */
#include <mpi.h>

int main(int argc, char **argv) {
  static char sent[8000], received[8000];
  int rank, size, one = 1, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Request requests[16];
  int num = 0;
  for (int k = 0; k <= rank; k++)
    MPI_Isend(sent, 1000 * (rank + 1), MPI_CHAR, next, 0, MPI_COMM_WORLD, &requests[num++]);
  MPI_Isend(sent, 0, MPI_CHAR, next, 0, MPI_COMM_WORLD, &requests[num++]);
  for (int k = 0; k <= before + 1; k++)
    MPI_Recv(received, sizeof received, MPI_CHAR, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return MPI_Finalize();
}
