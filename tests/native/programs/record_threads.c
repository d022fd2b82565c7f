/* Threads that exchange windows of small messages: thread k of rank 0 with thread k of rank 1, and so on for each pair of ranks.
 *
 * record_threads shared|own THREADS WINDOWS: on one communicator for all threads, or on one for each. A window is 32
 * messages of 8 bytes in each direction. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 32, MAX_THREADS = 64 };

static int rank, windows;
static MPI_Comm communicators[MAX_THREADS];
static pthread_barrier_t all; /* so that no thread ends before the last one has begun */

__attribute__((noinline)) static void exchange(MPI_Comm comm, int tag) {
  double sent[WINDOW] = {0}, received[WINDOW];
  MPI_Request requests[2 * WINDOW];
  for (int k = 0; k < WINDOW; k++) MPI_Irecv(&received[k], 1, MPI_DOUBLE, rank ^ 1, tag, comm, &requests[k]);
  for (int k = 0; k < WINDOW; k++) MPI_Isend(&sent[k], 1, MPI_DOUBLE, rank ^ 1, tag, comm, &requests[WINDOW + k]);
  MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
}

static void *run(void *argument) {
  const int thread = (int)(long)argument;
  pthread_barrier_wait(&all);
  for (int k = 0; k < windows; k++) exchange(communicators[thread], thread);
  pthread_barrier_wait(&all);
  return NULL;
}

int main(int argc, char **argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
  if (argc != 4 || threads < 1 || threads > MAX_THREADS || provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "record_threads shared|own THREADS WINDOWS, with 1 to %d threads and MPI_THREAD_MULTIPLE\n", MAX_THREADS);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  windows = (int)strtol(argv[3], NULL, 10);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int k = 0; k < threads; k++) {
    communicators[k] = MPI_COMM_WORLD;
    if (strcmp(argv[1], "own") == 0) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[k]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  pthread_t others[MAX_THREADS];
  pthread_barrier_init(&all, NULL, (unsigned)threads);
  for (int k = 0; k < threads; k++) pthread_create(&others[k], NULL, run, (void *)(long)k);
  for (int k = 0; k < threads; k++) pthread_join(others[k], NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%g\n", MPI_Wtime() - begin);
  MPI_Finalize();
  return 0;
}
