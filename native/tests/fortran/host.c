/* A C program that loads Fortran after MPI_Init and has its requests completed there: host PLUGIN. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#include "earlybird.h"

enum { PARTITIONS = 4, BYTES = 100000 };
static char data[PARTITIONS * BYTES];

int main(int argc, char **argv) {
  int rank, wrong = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!plugin) printf("failed: %s\n", dlerror());
  if (!plugin) MPI_Abort(MPI_COMM_WORLD, 1);
  void (*complete)(MPI_Fint *) = (void (*)(MPI_Fint *))dlsym(plugin, "complete");
  if (rank == 0) MPI_Psend_init(data, PARTITIONS, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data, PARTITIONS, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Fint handle = MPI_Request_c2f(request);
  for (int time = 1; time <= 3; time++) {
    for (int b = 0; b < PARTITIONS * BYTES; b++) data[b] = rank == 0 ? (char)(b + time) : -1;
    MPI_Start(&request);
    if (rank == 0) {
      nanosleep(&(struct timespec){0, 100000000}, NULL);
      MPI_Pready_range(0, PARTITIONS - 1, request);
    }
    complete(&handle);
    for (int b = 0; b < PARTITIONS * BYTES; b++) wrong += data[b] != (char)(b + time);
  }
  MPI_Request_free(&request);
  if (rank == 1) printf(wrong ? "failed: %d bytes are wrong\n" : "ok\n", wrong);
  MPI_Finalize();
  return 0;
}
