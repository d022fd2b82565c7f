/* Threads that reach the end of a parallel region at known times, before each exchange with the next rank.
 *
 * Argument: milliseconds between the arrivals of one thread and the next. The regions in other places, before and after, have
 * no delays. Prints how long before the last thread each one arrived, in nanoseconds by its own clock: on a busy machine
 * threads oversleep.
 */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, STEPS = 12, COUNT = 1000 };

static void sleep_until(struct timespec begin, long ms) {
  begin.tv_nsec += ms % 1000 * 1000000, begin.tv_sec += ms / 1000;
  if (begin.tv_nsec >= 1000000000) begin.tv_nsec -= 1000000000, begin.tv_sec++;
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &begin, NULL);
}

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((noinline)) static void delayed(long ms, long long *arrived_ns) {
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
#pragma omp parallel num_threads(THREADS)
  {
    if (omp_get_thread_num() == 0) /* nested regions do not count */
#pragma omp parallel num_threads(2)
      sleep_until(begin, ms * (1 - omp_get_thread_num()) / 2);
    sleep_until(begin, ms * (1 + omp_get_thread_num()));
    arrived_ns[omp_get_thread_num()] = now_ns();
  }
}

__attribute__((noinline)) static void even(double *sums) {
#pragma omp parallel num_threads(THREADS)
  {
    sums[omp_get_thread_num()] += 1;
  }
}

__attribute__((noinline)) static void exchange(double *sent, double *received, int rank, int size) {
  MPI_Request requests[2];
  MPI_Irecv(received, COUNT, MPI_DOUBLE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(sent, COUNT, MPI_DOUBLE, (rank + 1) % size, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
  int provided, rank, size;
  long long arrived_ns[THREADS], lead_ns[THREADS] = {0};
  double sums[THREADS] = {0}, sent[COUNT] = {0}, received[COUNT];
  omp_set_max_active_levels(2);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int step = 0; step < STEPS; step++) {
    even(sums);
    delayed(atol(argv[1]), arrived_ns);
    for (int t = 0; t < THREADS; t++) {
      long long last_ns = 0;
      for (int other = 0; other < THREADS; other++)
        if (arrived_ns[other] > last_ns) last_ns = arrived_ns[other];
      lead_ns[t] += last_ns - arrived_ns[t];
    }
    exchange(sent, received, rank, size);
    even(sums);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  printf("lead_ns %lld %lld %lld %lld\n", lead_ns[0] / STEPS, lead_ns[1] / STEPS, lead_ns[2] / STEPS, lead_ns[3] / STEPS);
  MPI_Finalize();
  return 0;
}
