/* Threads that are created in unusual ways, on each of the ranks: by other threads, many at once, detached, cancelled, ended by
 * pthread_exit, joined by another one than has created them; joins that fail; barriers that are made again at the same address; and
 * threads that begin before the MPI. The MPI is only called by the main thread. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AT_ONCE = 8 };

static pthread_barrier_t barrier;
static pthread_t early;
static int can_end;

static void expect(int is_true, const char *what) {
  if (is_true) return;
  fprintf(stderr, "record_odd_threads: %s\n", what);
  abort();
}

static void *idle(void *argument) {
  while (!__atomic_load_n(&can_end, __ATOMIC_ACQUIRE)) usleep(1000);
  return argument;
}
static void *nothing(void *argument) { return argument; }
static void *leave(void *argument) {
  pthread_exit(argument);
  return NULL;
}
static void *sleep_for_ever(void *argument) {
  for (;;) pause();
  return argument;
}
static void *meet(void *argument) {
  for (int k = 0; k < 5; k++) pthread_barrier_wait(&barrier);
  return argument;
}
static void *join_other(void *argument) {
  void *result = NULL;
  expect(pthread_join(*(pthread_t *)argument, &result) == 0 && result == &barrier, "a join by another thread");
  return NULL;
}
static void *create_others(void *argument) {
  pthread_t threads[AT_ONCE];
  for (int k = 0; k < AT_ONCE; k++) expect(pthread_create(&threads[k], NULL, nothing, &threads[k]) == 0, "a thread in a thread");
  for (int k = AT_ONCE - 1; k >= 0; k--) {
    void *result = NULL;
    expect(pthread_join(threads[k], &result) == 0 && result == &threads[k], "the result of a thread");
  }
  return argument;
}

static void meet_of(unsigned num) {
  pthread_t threads[3];
  pthread_barrier_init(&barrier, NULL, num);
  for (unsigned k = 0; k < num; k++) pthread_create(&threads[k], NULL, meet, NULL);
  for (unsigned k = 0; k < num; k++) pthread_join(threads[k], NULL);
  pthread_barrier_destroy(&barrier);
}

int main(int argc, char **argv) {
  pthread_t one, other;
  pthread_attr_t detached;
  void *result = NULL;
  expect(pthread_create(&early, NULL, idle, NULL) == 0, "a thread before MPI_Init");
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  /* 1 */
  pthread_create(&one, NULL, leave, &one);
  expect(pthread_join(one, &result) == 0 && result == &one, "pthread_exit");
  /* 2 */
  pthread_create(&one, NULL, sleep_for_ever, NULL);
  pthread_cancel(one);
  expect(pthread_join(one, &result) == 0 && result == PTHREAD_CANCELED, "a cancelled thread");
  /* 3, 4 */
  pthread_create(&one, NULL, nothing, &barrier);
  pthread_create(&other, NULL, join_other, &one);
  expect(pthread_join(other, NULL) == 0, "who joins");
  /* 5 to 22 */
  for (int k = 0; k < 2; k++) {
    pthread_create(&one, NULL, create_others, NULL);
    expect(pthread_join(one, NULL) == 0, "who creates others");
  }
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  for (int k = 0; k < AT_ONCE; k++) expect(pthread_create(&one, &detached, nothing, NULL) == 0, "a detached thread");
  pthread_attr_destroy(&detached);
  expect(pthread_join(pthread_self(), NULL) != 0, "a thread joins itself");
  /* 23 to 27 */
  meet_of(2);
  meet_of(3);
  /* 28 to 30 */
  for (int k = 0; k < 3; k++) {
    pthread_create(&one, NULL, nothing, NULL);
    usleep(1000); /* it has ended long before */
    pthread_join(one, NULL);
  }
  __atomic_store_n(&can_end, 1, __ATOMIC_RELEASE);
  expect(pthread_join(early, NULL) == 0, "a thread from before MPI_Init");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  pthread_create(&one, NULL, nothing, NULL);
  expect(pthread_join(one, NULL) == 0, "a thread after MPI_Finalize");
  return 0;
}
