/* What partitioned requests take: rank 0 makes so many sends to rank 1, which makes the receives, and each is started.
 *
 * channel_memory REQUESTS PARTITIONS PARTITION_BYTES STARTS LEVEL: prints, for each side, the bytes that the library holds per
 * request ("sender holds N"), and by how much the resident memory of the process has grown per request ("sender resident N").
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>

#include "library_memory.h"

static long held; /* by the library */

static int refuses_allocation(ElfW(Addr) offset) {
  (void)offset;
  return 0;
}

static void count_bytes(long num_bytes) { held += num_bytes; }

static long resident_bytes(void) {
  char line[256];
  long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status))
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  if (status) fclose(status);
  return kib * 1024;
}

int main(int argc, char **argv) {
  int rank, level;
  const int num = atoi(argv[1]), partitions = atoi(argv[2]), bytes = atoi(argv[3]), starts = atoi(argv[4]);
  (void)argc;
  MPI_Init_thread(NULL, NULL, atoi(argv[5]) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  find_library();
  const size_t size = (size_t)partitions * (size_t)bytes;
  char *buffer = malloc(size + 1); /* of all requests: one at a time is started */
  memset(buffer, rank, size + 1);
  MPI_Request *requests = malloc((size_t)num * sizeof *requests);
  MPI_Barrier(MPI_COMM_WORLD);
  const long held_before = held, resident_before = resident_bytes();
  for (int r = 0; r < num; r++) {
    /* Few of a tag, so that all of them have tags at hand. */
    if (rank == 0) MPI_Psend_init(buffer, partitions, bytes, MPI_BYTE, 1, r % 100, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[r]);
    else MPI_Precv_init(buffer, partitions, bytes, MPI_BYTE, 0, r % 100, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[r]);
  }
  for (int start = 0; start < starts; start++) {
    for (int r = 0; r < num; r++) {
      MPI_Start(&requests[r]);
      if (rank == 0) MPI_Pready_range(0, partitions - 1, requests[r]);
      MPI_Wait(&requests[r], MPI_STATUS_IGNORE);
    }
  }
  const char *side = rank == 0 ? "sender" : "receiver";
  printf("%s holds %ld\n%s resident %ld\n", side, (held - held_before) / num, side, (resident_bytes() - resident_before) / num);
  for (int r = 0; r < num; r++) MPI_Request_free(&requests[r]);
  MPI_Finalize();
  return 0;
}
