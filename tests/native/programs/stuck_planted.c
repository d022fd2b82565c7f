/* Hangs in the way that its argument names; 4 ranks. A process that nobody ends gives up after a minute.
 *
 * usage: stuck_planted threads|rows|roots|ssends|unreceived|persistent|grid
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 25, NUM = 10 };
static int rank, size;
static char sent[LARGE], received[LARGE];

static int is(const char *mode, const char *name) { return strcmp(mode, name) == 0; }

static void receive(int tag) {
  char byte;
  MPI_Recv(&byte, 1, MPI_CHAR, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void *receive_in_thread(void *nothing) {
  receive(31);
  return nothing;
}

/* Two threads of rank 0 wait for rank 1, and two of rank 1 for rank 0. */
static void wait_in_threads(void) {
  pthread_t second;
  if (rank > 1) return;
  pthread_create(&second, NULL, receive_in_thread, NULL);
  receive(30);
  pthread_join(second, NULL);
}

/* Two rows and two columns of ranks: each rank waits in a barrier for its right, upper, left or lower neighbour. */
static void meet_in_rows_and_columns(void) {
  MPI_Comm row, column;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
  const int is_row_first = rank == 0 || rank == 3;
  MPI_Barrier(is_row_first ? row : column);
  MPI_Barrier(is_row_first ? column : row);
}

static void reduce_to_two_roots(void) {
  MPI_Reduce(sent, received, LARGE / 4, MPI_INT, MPI_SUM, rank == 3 ? 3 : 0, MPI_COMM_WORLD);
}

static void send_in_a_ring(void) {
  MPI_Ssend(sent, 8, MPI_CHAR, (rank + 1) % size, 7, MPI_COMM_WORLD);
  MPI_Recv(received, 8, MPI_CHAR, (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The others go on to MPI_Finalize. */
static void send_what_nobody_receives(void) {
  MPI_Request request;
  if (rank != 0) return;
  MPI_Issend(sent, 8, MPI_CHAR, 1, 8, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void start_with_another_tag(void) {
  MPI_Request request;
  if (rank == 0) MPI_Send_init(sent, 8, MPI_CHAR, 1, 40, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Recv_init(received, 8, MPI_CHAR, 0, 41, MPI_COMM_WORLD, &request);
  if (rank < 2) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* One of ten messages of a column of ranks is sent on MPI_COMM_WORLD. */
static void receive_in_a_column(void) {
  MPI_Comm column;
  MPI_Request requests[NUM];
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
  for (int k = 0; k < NUM; k++) {
    if (rank == 1) MPI_Send(sent, 8, MPI_CHAR, k == 4 ? 3 : 1, 50 + k, k == 4 ? MPI_COMM_WORLD : column);
    if (rank == 3) MPI_Irecv(received + 8 * k, 8, MPI_CHAR, 0, 50 + k, column, &requests[k]);
  }
  if (rank == 3) MPI_Waitall(NUM, requests, MPI_STATUSES_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  int provided;
  alarm(60);
  MPI_Init_thread(&argc, &argv, is(mode, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is(mode, "threads")) wait_in_threads();
  if (is(mode, "rows")) meet_in_rows_and_columns();
  if (is(mode, "roots")) reduce_to_two_roots();
  if (is(mode, "ssends")) send_in_a_ring();
  if (is(mode, "unreceived")) send_what_nobody_receives();
  if (is(mode, "persistent")) start_with_another_tag();
  if (is(mode, "grid")) receive_in_a_column();
  MPI_Finalize();
  return 0;
}
