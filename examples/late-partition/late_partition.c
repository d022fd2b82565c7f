/* Rank 0 sends a buffer in partitions; the last partition is ready late. Rank 1 waits for the whole buffer.
 *
 * usage: late_partition PARTITIONS BYTES_PER_PARTITION LATE_MS STARTS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Simulates work. It does not call MPI and so gives MPI no progress. */
static void compute(double seconds) {
  for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) continue;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s PARTITIONS BYTES_PER_PARTITION LATE_MS STARTS\n", argv[0]);
    return 2;
  }
  const int partitions = atoi(argv[1]), bytes = atoi(argv[2]), starts = atoi(argv[4]);
  const double late_s = 1e-3 * atof(argv[3]);
  int rank;
  char *data = calloc((size_t)partitions, (size_t)bytes);
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(data, rank, (size_t)partitions * (size_t)bytes);
  if (rank == 0) MPI_Psend_init(data, partitions, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (rank == 1) MPI_Precv_init(data, partitions, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int start = 0; start < starts && rank < 2; start++) {
    MPI_Start(&request);
    for (int p = 0; rank == 0 && p < partitions; p++) {
      if (p == partitions - 1) compute(late_s);
      MPI_Pready(p, request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Synchronize the ranks before the next start. */
    const int peer = 1 - rank;
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 1, NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank < 2) MPI_Request_free(&request);
  free(data);
  MPI_Finalize();
  return 0;
}
