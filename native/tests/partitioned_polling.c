/* How long a round trip takes whose threads poll for their partitions: partitioned_polling THREADS PARTITIONS BYTES STARTS
 *
 * Two ranks. Thread t of rank 0 makes its share of the partitions ready and polls for its share of the answer; that of rank
 * 1 polls first and then answers. Prints the mean time of a start in microseconds, and the median: where two pollers take
 * turns on one core, most starts may be quick and all of them together slow. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<earlybird.h>)
#include <earlybird.h>
#else
#include <mpi.h>
#endif

static int rank, num_threads, num_partitions, num_starts;
static char *sent, *received;
static long partition_bytes;
static MPI_Request requests[2]; /* the receive, the send */
static pthread_barrier_t barrier;
static double *times_s;

static void check(int code) {
  if (code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, code);
}

static void make_ready(int first, int end, int start) {
  for (int k = first; k < end; k++) {
    memset(sent + k * partition_bytes, start, (size_t)partition_bytes);
    check(MPI_Pready(k, requests[1]));
  }
}

static void poll(int first, int end, int start) {
  for (int k = first; k < end; k++) {
    for (int flag = 0; !flag;) check(MPI_Parrived(requests[0], k, &flag));
    if (received[(k + 1) * partition_bytes - 1] != (char)start) MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

static void *work(void *index) {
  const int t = (int)(size_t)index, first = num_partitions * t / num_threads, end = num_partitions * (t + 1) / num_threads;
  for (int i = 0; i < num_starts; i++) {
    double begin_s = 0;
    if (t == 0) {
      check(MPI_Startall(2, requests));
      check(MPI_Barrier(MPI_COMM_WORLD));
      begin_s = MPI_Wtime();
    }
    pthread_barrier_wait(&barrier);
    if (rank == 0) make_ready(first, end, i);
    poll(first, end, i);
    if (rank == 1) make_ready(first, end, i);
    pthread_barrier_wait(&barrier);
    if (t > 0) continue;
    times_s[i] = MPI_Wtime() - begin_s;
    check(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  }
  return NULL;
}

static int compare(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv) {
  int level, num_ranks;
  if (argc != 5) return 2;
  num_threads = atoi(argv[1]), num_partitions = atoi(argv[2]), partition_bytes = atol(argv[3]) / num_partitions;
  num_starts = atoi(argv[4]);
  check(MPI_Init_thread(&argc, &argv, num_threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level));
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check(MPI_Comm_size(MPI_COMM_WORLD, &num_ranks));
  if (num_ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  sent = malloc((size_t)(num_partitions * partition_bytes));
  received = calloc((size_t)num_partitions, (size_t)partition_bytes);
  times_s = calloc((size_t)num_starts, sizeof *times_s);
  check(MPI_Precv_init(received, num_partitions, partition_bytes, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[0]));
  check(MPI_Psend_init(sent, num_partitions, partition_bytes, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
  pthread_barrier_init(&barrier, NULL, (unsigned)num_threads);
  pthread_t *threads = calloc((size_t)num_threads, sizeof *threads);
  for (int t = 1; t < num_threads; t++) pthread_create(&threads[t], NULL, work, (void *)(size_t)t);
  work(0);
  for (int t = 1; t < num_threads; t++) pthread_join(threads[t], NULL);
  double sum_s = 0;
  for (int i = 0; i < num_starts; i++) sum_s += times_s[i];
  qsort(times_s, (size_t)num_starts, sizeof *times_s, compare);
  if (rank == 0) printf("mean %.2f us, median %.2f us\n", sum_s / num_starts * 1e6, times_s[num_starts / 2] * 1e6);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  return MPI_Finalize();
}
