/* A rank is killed in the middle of a transfer: lost_rank WHO FILE. Rank 0 sends to rank 1; WHO kills itself in start 7, a sender when half of its
 * partitions are ready. The other one writes "error" and its class into the file when a call of it fails: a launcher may lose
 * what it prints. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTITIONS = 4, BYTES = 100000, LAST_START = 7, MAX_STARTS = 12, WHILE_OTHERS_COPY_US = 3000 };

static int rank, who;
static const char *path;

static void check(int code) {
  int class;
  if (code == MPI_SUCCESS) return;
  MPI_Error_class(code, &class);
  FILE *const file = fopen(path, "w");
  fprintf(file, "error %d\n", class);
  fclose(file);
  _exit(9);
}

static void die_if_last(int start) {
  if (rank != who || start != LAST_START) return;
  usleep(WHILE_OTHERS_COPY_US);
  raise(SIGKILL);
}

int main(int argc, char **argv) {
  static char data[PARTITIONS * BYTES];
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  who = atoi(argv[1]);
  path = argv[2];
  if (rank == 0) MPI_Psend_init(data, PARTITIONS, BYTES, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data, PARTITIONS, BYTES, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int start = 1; start <= MAX_STARTS; start++) {
    check(MPI_Start(&request));
    if (rank == 1) die_if_last(start);
    for (int p = 0; rank == 0 && p < PARTITIONS; p++) {
      if (p == PARTITIONS / 2) die_if_last(start);
      check(MPI_Pready(p, request));
    }
    check(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  return 0;
}
