/* Prints which files it has mapped below /dev/shm, and ends without MPI_Finalize: by MPI_Abort, by a signal, or with a status. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  char line[4400];
  MPI_Init(&argc, &argv);
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) {
    const char *name = strstr(line, "/dev/shm/");
    if (name && !strstr(name, "(deleted)")) printf("%s", name);
  }
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 3);
  if (strcmp(argv[1], "kill") == 0) kill(getpid(), SIGKILL);
  _exit(3);
}
