/* Exchanges whose partners change, `record_turns STEPS`, in three levels of MPI_Pcontrol.
 *
 * 1: in each step every rank sends to the next one, then to that after it, and so on. 2: a line of ranks, up and then down in one
 * function; ranks at the ends make fewer calls. 3: the same with blocking sends, each direction at its own place. */
#include <mpi.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

static int rank, size;
static char in[1000], out[1000];

NOINLINE static void shift(int by) {
  MPI_Request requests[2];
  MPI_Irecv(in, sizeof in, MPI_CHAR, (rank - by + size) % size, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, sizeof out, MPI_CHAR, (rank + by) % size, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

NOINLINE static void along(int from, int to) {
  MPI_Request requests[2];
  int num = 0;
  if (from >= 0 && from < size) MPI_Irecv(in, sizeof in, MPI_CHAR, from, 2, MPI_COMM_WORLD, &requests[num++]);
  if (to >= 0 && to < size) MPI_Isend(out, sizeof out, MPI_CHAR, to, 2, MPI_COMM_WORLD, &requests[num++]);
  MPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
}

NOINLINE static void up_and_down(void) {
  MPI_Request request;
  if (rank > 0) MPI_Irecv(in, sizeof in, MPI_CHAR, rank - 1, 3, MPI_COMM_WORLD, &request);
  if (rank < size - 1) MPI_Send(out, sizeof out, MPI_CHAR, rank + 1, 3, MPI_COMM_WORLD);
  if (rank > 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank < size - 1) MPI_Irecv(in, sizeof in, MPI_CHAR, rank + 1, 4, MPI_COMM_WORLD, &request);
  if (rank > 0) MPI_Send(out, sizeof out, MPI_CHAR, rank - 1, 4, MPI_COMM_WORLD);
  if (rank < size - 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  const int steps = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int step = 0; step < steps; step++)
    for (int by = 1; by < size; by++) shift(by);
  MPI_Pcontrol(2);
  for (int step = 0; step < steps; step++) {
    along(rank - 1, rank + 1);
    along(rank + 1, rank - 1);
  }
  MPI_Pcontrol(3);
  for (int step = 0; step < steps; step++) up_and_down();
  MPI_Pcontrol(4);
  MPI_Finalize();
  return 0;
}
