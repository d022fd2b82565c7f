/* Hangs in the way that its argument names, or only seems to; 4 ranks. A process that nobody ends gives up after a minute.
 *
 * usage: record_stuck receives|sends|tag|peer|communicator|missing|skipped|different|order|waitall|waitany|probe|partition|
 *                     stopped|exit|computes|spins|polls|sendrecv|small|idle|jumps|exchange|
 *                     fence|epoch|intercomm
 */
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 25, NUM = 10, LONG_S = 3 };
static int rank, size;
static char sent[LARGE], received[LARGE];

static int is(const char *mode, const char *name) { return strcmp(mode, name) == 0; }

static void compute(double seconds) {
  for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) continue;
}

static void all_reduce(MPI_Comm comm) {
  int one = 1, sum;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
}

/* Ranks 1 and 3 wait for each other, the others for them. */
static void wait_for_each_other(void) {
  if (rank == 1) MPI_Recv(received, 8, MPI_CHAR, 3, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 3) MPI_Recv(received, 8, MPI_CHAR, 1, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(sent, 8, MPI_CHAR, 3, 6, MPI_COMM_WORLD);
  if (rank == 3) MPI_Send(sent, 8, MPI_CHAR, 1, 5, MPI_COMM_WORLD);
  all_reduce(MPI_COMM_WORLD);
}

/* A worker that has called the MPI, and waits for the main thread then. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_wanted = PTHREAD_COND_INITIALIZER;
static void *work(void *is_ready) {
  MPI_Barrier(MPI_COMM_SELF);
  pthread_mutex_lock(&lock);
  __atomic_store_n((int *)is_ready, 1, __ATOMIC_RELEASE);
  for (;;) pthread_cond_wait(&is_wanted, &lock);
  return NULL;
}

static void start_worker(void) {
  static int is_ready;
  pthread_t worker;
  pthread_create(&worker, NULL, work, &is_ready);
  while (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE)) usleep(1000);
}

/* Only messages that the MPI buffers do not hang. */
static void send_first(int bytes) {
  const int other = rank ^ 1;
  MPI_Send(sent, bytes, MPI_CHAR, other, 7, MPI_COMM_WORLD);
  MPI_Recv(received, bytes, MPI_CHAR, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* What rank 1 receives is not quite what rank 0 sends. */
static void send_another(const char *mode) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  if (rank == 0) MPI_Send(sent, 8, MPI_CHAR, is(mode, "peer") ? 2 : 1, is(mode, "tag") ? 5 : 6, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(received, 8, MPI_CHAR, 0, 6, is(mode, "communicator") ? other : MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void receive_what_nobody_sends(const char *mode) {
  MPI_Request requests[NUM];
  if (rank == 1 && is(mode, "probe")) MPI_Probe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1 && is(mode, "missing")) MPI_Recv(received, 8, MPI_CHAR, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1 && (is(mode, "waitall") || is(mode, "waitany"))) {
    for (int r = 0; r < NUM; r++) MPI_Irecv(received + r, 1, MPI_CHAR, 0, 20 + r, MPI_COMM_WORLD, &requests[r]);
    for (int done = 0, index; is(mode, "waitany") && done < NUM; done++) MPI_Waitany(NUM, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitall(NUM, requests, MPI_STATUSES_IGNORE);
  }
  for (int r = 0; rank == 0 && r < NUM; r++)
    if (r != 6 && (is(mode, "waitall") || is(mode, "waitany"))) MPI_Send(sent, 1, MPI_CHAR, 1, 20 + r, MPI_COMM_WORLD);
  /* The others go on to MPI_Finalize. */
}

static void call_another_collective(const char *mode) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is(mode, "skipped") && rank != 2) MPI_Barrier(MPI_COMM_WORLD);
  if (is(mode, "different")) {
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    else all_reduce(MPI_COMM_WORLD);
  }
  if (is(mode, "order")) {
    MPI_Barrier(rank == 3 ? other : MPI_COMM_WORLD);
    MPI_Barrier(rank == 3 ? MPI_COMM_WORLD : other);
  }
}

/* Rank 1 never says that the last partition is ready. */
static void forget_partition(void) {
#if MPI_VERSION >= 4 || defined OPEN_MPI
  MPI_Request request;
  if (rank > 1) return;
  if (rank == 1) MPI_Psend_init(sent, 4, 8, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Precv_init(received, 4, 8, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  int listed[2] = {2, 0}; /* headers differ in a const */
  if (rank == 1) MPI_Pready(1, request), MPI_Pready_list(2, listed, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
}

/* Rank 0 polls for the results of the others, which take a while. */
static void poll_for_results(void) {
  for (int r = 1; rank == 0 && r < size;) {
    int is_there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &is_there, &status);
    if (!is_there) continue;
    MPI_Recv(received, 8, MPI_CHAR, status.MPI_SOURCE, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    r++;
  }
  if (rank == 0) return;
  sleep(LONG_S);
  MPI_Send(sent, 8, MPI_CHAR, 0, 4, MPI_COMM_WORLD);
}

/* A ring in which the last one receives from the wrong neighbour. */
static void shift(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Sendrecv(sent, LARGE, MPI_CHAR, right, 2, received, LARGE, MPI_CHAR, rank == 3 ? right : left, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/* Rank 2 does not come to the second MPI_Win_fence, or does not end its epoch: it waits for rank 0. */
static void synchronize(const char *mode) {
  MPI_Win window;
  MPI_Group world, group;
  const int ends[] = {0, 2};
  MPI_Win_create(received, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, rank == 0 ? &ends[1] : &ends[0], &group);
  if (is(mode, "epoch") && rank == 0) MPI_Win_post(group, 0, window);
  if (is(mode, "epoch") && rank == 2) MPI_Win_start(group, 0, window);
  if (rank == 2) MPI_Recv(received, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (is(mode, "fence")) MPI_Win_fence(0, window);
  if (is(mode, "epoch") && rank == 2) MPI_Win_complete(window);
  if (is(mode, "epoch") && rank == 0) MPI_Win_wait(window);
  if (rank == 0) MPI_Send(sent, 8, MPI_CHAR, 2, 1, MPI_COMM_WORLD);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  MPI_Win_free(&window);
}

/* Ranks 0 and 1 are in a barrier with 2 and 3, of which one waits for rank 0. */
static void synchronize_groups(void) {
  MPI_Comm own, inter;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &own);
  MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 5, &inter);
  MPI_Barrier(inter);
  if (rank == 2) MPI_Recv(received, 8, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE);
  MPI_Barrier(inter);
  if (rank == 0) MPI_Send(sent, 8, MPI_CHAR, 0, 1, inter);
}

static jmp_buf before;
static void jump(MPI_Comm *comm, int *code, ...) { longjmp(before, 1); }

/* A receive from a rank that there is not fails, and never returns. */
static void leave_a_call(void) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(jump, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  if (setjmp(before) == 0) MPI_Recv(received, 8, MPI_CHAR, size + 70, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) sleep(LONG_S);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Between the first and the last rank, for ever. */
static void exchange(void) {
  const int other = size - 1 - rank;
  for (; rank == 0 || other == 0; usleep(1000)) {
    if (rank == 0) MPI_Send(sent, 8, MPI_CHAR, other, 3, MPI_COMM_WORLD);
    MPI_Recv(received, 8, MPI_CHAR, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(sent, 8, MPI_CHAR, other, 3, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  alarm(60);
  int provided;
  MPI_Init_thread(&argc, &argv, is(mode, "idle") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is(mode, "idle")) start_worker();
  if (is(mode, "receives") || is(mode, "idle")) wait_for_each_other();
  if (is(mode, "sends") || is(mode, "small")) send_first(is(mode, "sends") ? LARGE : 8);
  if (is(mode, "tag") || is(mode, "peer") || is(mode, "communicator")) send_another(mode);
  receive_what_nobody_sends(mode);
  if (is(mode, "skipped") || is(mode, "different") || is(mode, "order")) call_another_collective(mode);
  if (is(mode, "partition")) forget_partition();
  if (is(mode, "stopped") && rank == 2) raise(SIGSTOP);
  if (is(mode, "exit") && rank == 2) _exit(0);
  if (is(mode, "computes") && rank == 2) sleep(LONG_S);
  if (is(mode, "spins") && rank == 2) compute(LONG_S);
  if (is(mode, "stopped") || is(mode, "exit") || is(mode, "computes") || is(mode, "spins")) MPI_Barrier(MPI_COMM_WORLD);
  if (is(mode, "polls")) poll_for_results();
  if (is(mode, "jumps")) leave_a_call();
  if (is(mode, "exchange")) exchange();
  if (is(mode, "sendrecv")) shift();
  if (is(mode, "fence") || is(mode, "epoch")) synchronize(mode);
  if (is(mode, "intercomm")) synchronize_groups();
  MPI_Finalize();
  return 0;
}
