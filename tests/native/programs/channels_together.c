/* How long starts take in which many partitioned requests of a kind are started together, and MPI_Init.
 *
 * channels_together REQUESTS PARTITIONS PARTITION_BYTES STARTS LATE_US: rank 0 sends to rank 1. The last partition of each request is
 * ready LATE_US after all others. Rank 0 prints "init SECONDS" and "start SECONDS" for each start, from its begin until rank 1
 * has everything, without the delay.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  const int num = atoi(argv[1]), partitions = atoi(argv[2]), bytes = atoi(argv[3]), starts = atoi(argv[4]);
  const double late_s = 1e-6 * atof(argv[5]);
  const double init_s = now_s();
  int rank, level;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &level);
  const double after_init_s = now_s();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("init %.9f\n", after_init_s - init_s);
  const size_t size = (size_t)partitions * (size_t)bytes;
  char *buffer = calloc((size_t)num * size + 1, 1);
  MPI_Request *requests = malloc(((size_t)num + 1) * sizeof *requests);
  for (int r = 0; r < num; r++) {
    char *const own = buffer + (size_t)r * size;
    if (rank == 0) MPI_Psend_init(own, partitions, bytes, MPI_BYTE, 1, r % 100, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[r]);
    else MPI_Precv_init(own, partitions, bytes, MPI_BYTE, 0, r % 100, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[r]);
  }
  for (int start = 0; start < starts; start++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin_s = now_s();
    MPI_Startall(num, requests);
    if (rank == 0) {
      for (int r = 0; r < num && partitions > 1; r++) MPI_Pready_range(0, partitions - 2, requests[r]);
      const double late_from_s = now_s();
      while (now_s() - late_from_s < late_s) continue;
      for (int r = 0; r < num; r++) MPI_Pready(partitions - 1, requests[r]);
    }
    MPI_Waitall(num, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && num > 0) printf("start %.9f\n", now_s() - begin_s - late_s);
  }
  for (int r = 0; r < num; r++) MPI_Request_free(&requests[r]);
  MPI_Finalize();
  return 0;
}
