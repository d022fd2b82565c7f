/* A program with known phases: freed requests, an assembly, steps of a stencil on a line with a sum after each, and sweeps along the line.
 *
 * record_phases STEPS SWEEPS: the stencil sends 1000 bytes to each neighbour, twice as many in region 2; the assembly
 * 1 + 10 * destination bytes to each rank. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 1000, BLOCKS = 3, MAX_RANKS = 64 };

static int rank, size;
static char sent[2 * CELLS * MAX_RANKS], received[2 * CELLS * MAX_RANKS];

/* Requests that are freed before and after their completion must not keep the epochs after them open. */
__attribute__((noinline)) void warm_up(void) {
  MPI_Request requests[2];
  MPI_Recv_init(received, 8, MPI_CHAR, 0, 2, MPI_COMM_SELF, &requests[0]);
  MPI_Send_init(sent, 8, MPI_CHAR, 0, 2, MPI_COMM_SELF, &requests[1]);
  MPI_Startall(2, requests);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Isend(sent, 8, MPI_CHAR, 0, 2, MPI_COMM_SELF, &requests[0]);
  MPI_Request_free(&requests[0]);
  MPI_Recv(received, 8, MPI_CHAR, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Send_init(sent, 8, MPI_CHAR, MPI_PROC_NULL, 2, MPI_COMM_SELF, &requests[0]);
  MPI_Start(&requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  MPI_Request_free(&requests[0]);
}

__attribute__((noinline)) void assemble(void) {
  int counts[MAX_RANKS], places[MAX_RANKS], own[MAX_RANKS];
  for (int r = 0; r < size; r++) {
    counts[r] = 1 + 10 * r;
    own[r] = 1 + 10 * rank;
    places[r] = r * CELLS;
  }
  MPI_Alltoallv(sent, counts, places, MPI_CHAR, received, own, places, MPI_CHAR, MPI_COMM_WORLD);
}

/* Each neighbour has its own calls, so that the ranks at the ends make others than those between them. */
__attribute__((noinline)) void exchange(int cells) {
  MPI_Request requests[4];
  int num = 0;
  if (rank > 0) {
    MPI_Irecv(received, cells, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, &requests[num++]);
    MPI_Isend(sent, cells, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, &requests[num++]);
  }
  if (rank < size - 1) {
    MPI_Irecv(received + cells, cells, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD, &requests[num++]);
    MPI_Isend(sent, cells, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD, &requests[num++]);
  }
  MPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) void sum(void) {
  double own = 1, all;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

__attribute__((noinline)) void sweep(void) {
  for (int block = 0; block < BLOCKS; block++) {
    if (rank > 0) MPI_Recv(received, CELLS, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank < size - 1) MPI_Send(sent, 100, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  const int steps = argc > 2 ? atoi(argv[1]) : 1, sweeps = argc > 2 ? atoi(argv[2]) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  warm_up();
  assemble();
  for (int s = 0; s < steps; s++) {
    exchange(CELLS);
    sum();
  }
  for (int s = 0; s < sweeps; s++) {
    sweep();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Pcontrol(2);
  for (int s = 0; s < steps; s++) exchange(2 * CELLS);
  MPI_Finalize();
  return 0;
}
