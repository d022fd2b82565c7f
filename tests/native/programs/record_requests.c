/* Two ranks use requests in unusual ways, by the first argument; each way ends with ten synchronous sends from rank 1 to 0.
 *
 * failed_any, failed_some, failed_all: a message of 8 bytes, and one of 64 in a receive of 4, which fails.
 * failed_persistent: the first of these in a persistent receive, by MPI_Waitall.
 * generalized: STEPS exchanges, each with a generalized request in the middle.
 * helper: STEPS exchanges that another thread completes, and a sum after each.
 * cancelled: a receive that is cancelled.
 * named: a communicator that has its name after its first use.
 * freed: STEPS exchanges of two messages, of which the first send is freed and the second waited for.
 * long: MANY blocking messages from rank 0 to 1, STEPS exchanges, and so again.
 * shared: two threads send by turns, and one of them completes all. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 20, MANY = 3000, SENDS = 200 };

static int rank;
static MPI_Request pair[2];
static int is_helper_due;

static void receive_two(const char *way) {
  static char small[8], large[64];
  MPI_Request requests[2];
  MPI_Status statuses[2];
  int num, indices[2];
  if (rank == 0) {
    MPI_Send(small, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Send(large, 64, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  }
  const int is_persistent = strcmp(way, "failed_persistent") == 0;
  if (is_persistent) {
    MPI_Recv_init(small, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Start(&requests[0]);
  } else {
    MPI_Irecv(small, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
  }
  MPI_Irecv(large, 4, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(way, "failed_any") == 0)
    for (int i = 0; i < 2; i++) MPI_Waitany(2, requests, indices, MPI_STATUS_IGNORE);
  else if (strcmp(way, "failed_some") == 0)
    while (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL)
      MPI_Waitsome(2, requests, &num, indices, MPI_STATUSES_IGNORE);
  else MPI_Waitall(2, requests, statuses);
  if (is_persistent) MPI_Request_free(&requests[0]);
}

static int query(void *state, MPI_Status *status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int forget(void *state) { return (void)state, MPI_SUCCESS; }
static int cancel(void *state, int is_complete) { return (void)state, (void)is_complete, MPI_SUCCESS; }

static void begin_exchange(char *in, char *out) {
  MPI_Irecv(in, 8, MPI_BYTE, 1 - rank, 4, MPI_COMM_WORLD, &pair[0]);
  MPI_Isend(out, 8, MPI_BYTE, 1 - rank, 4, MPI_COMM_WORLD, &pair[1]);
}

static void exchange_with_generalized(void) {
  char in[8], out[8] = "";
  for (int step = 0; step < STEPS; step++) {
    MPI_Request generalized;
    MPI_Irecv(in, 8, MPI_BYTE, 1 - rank, 4, MPI_COMM_WORLD, &pair[0]);
    MPI_Grequest_start(query, forget, cancel, NULL, &generalized);
    MPI_Grequest_complete(generalized);
    MPI_Wait(&generalized, MPI_STATUS_IGNORE);
    MPI_Isend(out, 8, MPI_BYTE, 1 - rank, 4, MPI_COMM_WORLD, &pair[1]);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
  }
}

static void *help(void *unused) {
  for (int step = 0; step < STEPS; step++) {
    while (!__atomic_load_n(&is_helper_due, __ATOMIC_ACQUIRE)) sched_yield();
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    __atomic_store_n(&is_helper_due, 0, __ATOMIC_RELEASE);
  }
  return unused;
}

static void exchange_with_helper(void) {
  char in[8], out[8] = "";
  pthread_t helper;
  pthread_create(&helper, NULL, help, NULL);
  for (int step = 0; step < STEPS; step++) {
    int one = 1, sum;
    begin_exchange(in, out);
    __atomic_store_n(&is_helper_due, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&is_helper_due, __ATOMIC_ACQUIRE)) sched_yield();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  pthread_join(helper, NULL);
}

static void receive_and_cancel(void) {
  char in[8];
  MPI_Request request;
  MPI_Irecv(in, 8, MPI_BYTE, 1 - rank, 99, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void name_after_use(void) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
  MPI_Comm_set_name(copy, "named late");
  MPI_Barrier(copy);
  MPI_Comm_free(&copy);
}

static void free_the_first(void) {
  char in[2], out[2] = "";
  MPI_Request requests[4];
  for (int step = 0; step < STEPS; step++) {
    for (int k = 0; k < 2; k++) MPI_Irecv(&in[k], 1, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, &requests[k]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int k = 0; k < 2; k++) MPI_Isend(&out[k], 1, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, &requests[2 + k]);
    MPI_Request_free(&requests[2]);
    MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
}

static void send_many(void) {
  char in[8], out[8] = "";
  for (int turn = 0; turn < 2; turn++) {
    for (int k = 0; k < MANY; k++) {
      if (rank == 0) MPI_Send(out, 8, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
      else MPI_Recv(in, 8, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int step = 0; step < STEPS; step++) {
      begin_exchange(in, out);
      MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    }
  }
}

static MPI_Request shared[3 * SENDS];

static void *send_some(void *first) {
  static char out[1];
  MPI_Request *requests = first;
  for (int k = 0; k < SENDS; k++) MPI_Isend(out, 1, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &requests[k]);
  return NULL;
}

static void complete_of_both(void) {
  static char in[3 * SENDS];
  MPI_Request requests[3 * SENDS];
  pthread_t other;
  for (int k = 0; k < 3 * SENDS; k++) MPI_Irecv(&in[k], 1, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD, &requests[k]);
  MPI_Barrier(MPI_COMM_WORLD);
  send_some(shared);
  pthread_create(&other, NULL, send_some, shared + SENDS);
  pthread_join(other, NULL);
  send_some(shared + 2 * SENDS);
  MPI_Waitall(3 * SENDS, shared, MPI_STATUSES_IGNORE);
  MPI_Waitall(3 * SENDS, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
  int provided;
  char message[32] = "";
  const char *way = argc > 1 ? argv[1] : "";
  const int has_threads = strcmp(way, "helper") == 0 || strcmp(way, "shared") == 0;
  MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strncmp(way, "failed", 6) == 0) receive_two(way);
  else if (strcmp(way, "generalized") == 0) exchange_with_generalized();
  else if (strcmp(way, "helper") == 0) exchange_with_helper();
  else if (strcmp(way, "cancelled") == 0) receive_and_cancel();
  else if (strcmp(way, "named") == 0) name_after_use();
  else if (strcmp(way, "freed") == 0) free_the_first();
  else if (strcmp(way, "long") == 0) send_many();
  else if (strcmp(way, "shared") == 0) complete_of_both();
  else return 2;
  for (int i = 0; i < 10; i++) {
    MPI_Request request;
    if (rank == 0) MPI_Recv(message, 32, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else {
      MPI_Issend(message, 32, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  MPI_Finalize();
  return 0;
}
