/* Hangs in a persistent collective that rank 2 does not start, in a call on a file that it does not make, or in a lock that
 * rank 0 does not end; 4 ranks.
 *
 * usage: record_objects persistent|file|file-request|many-persistent|many-files|lock PATH
 *
 * many-: of more objects than have a place, the earlier of which are freed.
 */
#include <mpi.h>
#include <string.h>
#include <unistd.h>

static int rank;
static char received[8];

static void start_barrier(void) {
#if MPI_VERSION >= 4 || defined OPEN_MPI
  MPI_Request request;
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int start = 0; start < 2; start++) {
    if (start == 1 && rank == 2) MPI_Recv(received, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
#endif
}

enum { MANY = 100 };

static void start_many_barriers(void) {
#if MPI_VERSION >= 4 || defined OPEN_MPI
  for (int made = 0; made <= MANY; made++) {
    MPI_Request request;
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (made == MANY && rank == 2) MPI_Recv(received, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  }
#endif
}

static void open_many_files(const char *path) {
  for (int opened = 0; opened <= MANY; opened++) {
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (opened == MANY && rank == 2) MPI_Recv(received, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_File_set_size(file, 64);
    MPI_File_close(&file);
  }
}

static void open_file(const char *path) {
  MPI_File file, again;
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_size(file, 64);
  if (rank == 2) MPI_Recv(received, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &again);
  MPI_File_close(&again);
  MPI_File_close(&file);
}

static void write_with_requests(const char *path) {
  MPI_File file;
  MPI_Request request;
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int written = 0; written < 2; written++) {
    if (written == 1 && rank == 2) MPI_Recv(received, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_File_iwrite_at_all(file, 8 * (MPI_Offset)rank, received, 8, MPI_CHAR, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
}

/* Rank 0 holds the lock for which rank 1 waits, and waits for rank 1. So does rank 2 in an epoch of MPI_PROC_NULL, which locks
 * nobody, except on Open MPI, which ends a program that locks MPI_PROC_NULL. */
static void lock_window(void) {
  int value = rank;
  MPI_Win window;
  MPI_Win_create(received, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 1) MPI_Recv(received, 8, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 2) {
#ifndef OPEN_MPI
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, window);
#endif
    MPI_Recv(received, 8, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#ifndef OPEN_MPI
    MPI_Win_unlock(MPI_PROC_NULL, window);
#endif
  }
  if (rank < 2) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 3, 0, window);
    MPI_Put(&value, 1, MPI_INT, 3, 0, 1, MPI_INT, window);
    MPI_Win_flush(3, window);
  }
  if (rank == 0) {
    MPI_Send(received, 8, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
    MPI_Recv(received, 8, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank < 2) MPI_Win_unlock(3, window);
  for (int waiting = 0; rank == 1 && waiting <= 2; waiting += 2) MPI_Send(received, 8, MPI_CHAR, waiting, 3, MPI_COMM_WORLD);
  MPI_Win_free(&window);
}

int main(int argc, char **argv) {
  alarm(60);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(argv[1], "persistent") == 0) start_barrier();
  if (strcmp(argv[1], "many-persistent") == 0) start_many_barriers();
  if (strcmp(argv[1], "many-files") == 0) open_many_files(argv[2]);
  if (strcmp(argv[1], "file") == 0) open_file(argv[2]);
  if (strcmp(argv[1], "file-request") == 0) write_with_requests(argv[2]);
  if (strcmp(argv[1], "lock") == 0) lock_window();
  if (rank == 0) MPI_Send(received, 8, MPI_CHAR, 2, 1, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
