/* Threads that rank 0 creates and joins in each step, each of which computes and then sends to rank 1.
 *
 * record_workers STEPS FIRST_US SECOND_US BYTES [meet]: two threads that compute, or sleep, for so many microseconds; a message of
 * so many bytes each. With `meet` they wait for each other at a barrier before they send. Rank 1 receives both and answers. Rank 0
 * prints the seconds from the second MPI_Barrier to the third. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { WORKERS = 2 };

typedef struct {
  int number;
  long computes_us;
  char *data;
} worker;

static int bytes, meets;
static pthread_barrier_t both;

/* A thread that sleeps leaves its core to the others, as if it had one of its own. */
__attribute__((noinline)) static void compute(long microseconds) {
  const struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
  nanosleep(&time, NULL);
}

__attribute__((noinline)) static void *work(void *given) {
  const worker *const own = given;
  prctl(PR_SET_TIMERSLACK, 1000UL);
  compute(own->computes_us);
  if (meets) pthread_barrier_wait(&both);
  MPI_Send(own->data, bytes, MPI_CHAR, 1, own->number, MPI_COMM_WORLD);
  return NULL;
}

__attribute__((noinline)) static void send_by_workers(worker *workers) {
  pthread_t threads[WORKERS];
  for (int k = 0; k < WORKERS; k++) pthread_create(&threads[k], NULL, work, &workers[k]);
  for (int k = 0; k < WORKERS; k++) pthread_join(threads[k], NULL);
}

__attribute__((noinline)) static void receive(worker *workers) {
  MPI_Request requests[WORKERS];
  for (int k = 0; k < WORKERS; k++) MPI_Irecv(workers[k].data, bytes, MPI_CHAR, 0, k, MPI_COMM_WORLD, &requests[k]);
  MPI_Waitall(WORKERS, requests, MPI_STATUSES_IGNORE);
  MPI_Send(NULL, 0, MPI_CHAR, 0, WORKERS, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  int provided, rank, size;
  worker workers[WORKERS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 5 || size != 2 || provided != MPI_THREAD_MULTIPLE) {
    fprintf(stderr, "record_workers STEPS FIRST_US SECOND_US BYTES [meet], with 2 ranks and MPI_THREAD_MULTIPLE\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int steps = atoi(argv[1]);
  bytes = atoi(argv[4]);
  meets = argc > 5 && strcmp(argv[5], "meet") == 0;
  pthread_barrier_init(&both, NULL, WORKERS);
  for (int k = 0; k < WORKERS; k++) {
    workers[k] = (worker){k, atol(argv[2 + k]), malloc((size_t)bytes + 1)};
    memset(workers[k].data, k, (size_t)bytes + 1);
  }
  MPI_Barrier(MPI_COMM_WORLD); /* ranks start at different times */
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int step = 0; step < steps; step++) {
    if (rank != 0) {
      receive(workers);
      continue;
    }
    send_by_workers(workers);
    MPI_Recv(NULL, 0, MPI_CHAR, 1, WORKERS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%.6f s\n", MPI_Wtime() - begin);
  for (int k = 0; k < WORKERS; k++) free(workers[k].data);
  MPI_Finalize();
  return 0;
}
