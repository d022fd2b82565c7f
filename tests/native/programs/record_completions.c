/* Posts requests of every kind and completes them by every call; two ranks. With "hang", rank 1 then receives what nobody sends.
 *
 * With "full" no file may become larger than 100 KiB, as on a full disk.
 *
 * usage: record_completions [hang|threads|full]
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NUM = 6, BYTES = 1 << 17 };
static char sent[NUM][BYTES], received[NUM][BYTES];
static int rank, other;

/* Of sizes that the MPI sends at once, and of one that it does not. */
static int bytes_of(int k) { return k % 2 ? BYTES : 8; }

__attribute__((noinline)) static void post(MPI_Request requests[2 * NUM], int tag) {
  for (int k = 0; k < NUM; k++) MPI_Irecv(received[k], bytes_of(k), MPI_CHAR, other, tag + k, MPI_COMM_WORLD, &requests[k]);
  for (int k = 0; k < NUM; k++) MPI_Isend(sent[k], bytes_of(k), MPI_CHAR, other, tag + k, MPI_COMM_WORLD, &requests[NUM + k]);
}

static void wait_for_all(void) {
  MPI_Request requests[2 * NUM];
  post(requests, 0);
  MPI_Waitall(2 * NUM, requests, MPI_STATUSES_IGNORE);
}

static void wait_one_by_one(void) {
  MPI_Request requests[2 * NUM];
  post(requests, 10);
  for (int k = 0; k < 2 * NUM; k++) MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
}

static void wait_for_any(void) {
  MPI_Request requests[2 * NUM];
  int index;
  post(requests, 20);
  for (int k = 0; k < 2 * NUM; k++) MPI_Waitany(2 * NUM, requests, &index, MPI_STATUS_IGNORE);
}

static void wait_for_some(void) {
  MPI_Request requests[2 * NUM];
  int indices[2 * NUM], num = 0;
  post(requests, 30);
  for (int done = 0; done < 2 * NUM; done += num) MPI_Waitsome(2 * NUM, requests, &num, indices, MPI_STATUSES_IGNORE);
}

static void test_until_done(void) {
  MPI_Request requests[2 * NUM];
  int is_done = 0;
  post(requests, 40);
  while (!is_done) MPI_Testall(2 * NUM, requests, &is_done, MPI_STATUSES_IGNORE);
}

static void persist(void) {
  MPI_Request requests[2];
  MPI_Recv_init(received[0], 8, MPI_CHAR, other, 50, MPI_COMM_WORLD, &requests[0]);
  MPI_Send_init(sent[0], 8, MPI_CHAR, other, 50, MPI_COMM_WORLD, &requests[1]);
  for (int k = 0; k < 3; k++) {
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Start(&requests[0]);
  MPI_Start(&requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void others(void) {
  MPI_Request requests[4];
  int value = rank, sum;
  MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
  MPI_Irecv(received[0], 8, MPI_CHAR, MPI_PROC_NULL, 60, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(sent[0], 8, MPI_CHAR, MPI_PROC_NULL, 60, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  MPI_Irecv(received[0], 8, MPI_CHAR, other, 61, MPI_COMM_WORLD, &requests[0]);
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void block(void) {
  MPI_Sendrecv(sent[0], 8, MPI_CHAR, other, 70, received[0], 8, MPI_CHAR, other, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Send(sent[0], 8, MPI_CHAR, other, 71, MPI_COMM_WORLD);
  else MPI_Recv(received[0], 8, MPI_CHAR, other, 71, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Two ways to the same members, and both used: only their identity tells them apart. */
static void duplicate(void) {
  MPI_Comm first, second, part, grid, half;
  MPI_Group group, of_rank;
  MPI_Request request;
  const int dims[1] = {2}, periods[1] = {1};
  int value = 1;
  MPI_Comm_idup(MPI_COMM_WORLD, &first, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  /* Used in another order by the two ranks. */
  if (rank == 0) MPI_Send(sent[0], 8, MPI_CHAR, 1, 0, first), MPI_Send(sent[0], 16, MPI_CHAR, 1, 0, second);
  else {
    MPI_Recv(received[0], 16, MPI_CHAR, 0, 0, second, MPI_STATUS_IGNORE);
    MPI_Recv(received[0], 8, MPI_CHAR, 0, 0, first, MPI_STATUS_IGNORE);
  }
  MPI_Comm_split(second, rank, 0, &part); /* of one rank each */
  MPI_Bcast(&value, 1, MPI_INT, 0, part);
  MPI_Cart_create(first, 1, dims, periods, 0, &grid);
  MPI_Bcast(&value, 1, MPI_INT, 0, grid);
  MPI_Comm_group(second, &group);
  MPI_Group_incl(group, 1, &rank, &of_rank);
  MPI_Comm_create_group(second, of_rank, 5, &half);
  MPI_Bcast(&value, 1, MPI_INT, 0, half);
  MPI_Comm_free(&half);
  MPI_Group_free(&of_rank);
  MPI_Group_free(&group);
  MPI_Comm_free(&grid);
  MPI_Comm_free(&part);
  MPI_Comm_free(&second);
  MPI_Comm_free(&first);
}

static void *communicate(void *comm_of_thread) {
  char in[8], out[8] = "";
  MPI_Comm comm = *(MPI_Comm *)comm_of_thread;
  for (int k = 0; k < 200; k++) {
    MPI_Request requests[2];
    MPI_Irecv(in, 8, MPI_CHAR, other, 0, comm, &requests[0]);
    MPI_Isend(out, 8, MPI_CHAR, other, 0, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  return NULL;
}

static void use_threads(void) {
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  MPI_Comm comms[THREADS];
  for (int t = 0; t < THREADS; t++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[t]);
  for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, communicate, &comms[t]);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  for (int t = 0; t < THREADS; t++) MPI_Comm_free(&comms[t]);
}

__attribute__((noinline)) static void hang(void) {
  if (rank == 1) MPI_Recv(received[0], 8, MPI_CHAR, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    for (;;) pause();
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "";
  const bool is_full = strcmp(way, "full") == 0, has_threads = is_full || strcmp(way, "threads") == 0;
  const struct rlimit limit = {100 << 10, 100 << 10};
  int level;
  MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
  if (is_full) {
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  if (has_threads) use_threads();
  wait_for_all();
  wait_one_by_one();
  wait_for_any();
  wait_for_some();
  test_until_done();
  persist();
  others();
  block();
  duplicate();
  if (strcmp(way, "hang") == 0) hang();
  return MPI_Finalize();
}
