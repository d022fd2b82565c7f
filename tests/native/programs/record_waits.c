/* Four ranks that wait for known times, in milliseconds, in each of so many rounds: `record_waits ROUNDS`.
 *
 * MPI_Recv of rank 0: 80 for rank 1. MPI_Waitall of rank 0: 64 for rank 2. MPI_Waitall of rank 0: 56 for rank 3; they begin to exchange
 * 1 MiB, and then rank 3 is outside the MPI. MPI_Wait of rank 0 for its send of 1 MiB: 72 for rank 2; MPI_Waitany for a persistent
 * one: 36 for rank 1. MPI_Barrier: 48 for rank 3. MPI_Bcast: 40 for rank 2, except by that. MPI_Reduce: 32 of rank 0
 * for rank 1. Barriers before each of them, which are not measured, have a communicator of their own. The times are longer than a
 * rank waits for its core between what it says and its call on a busy machine.
 *
 * Whoever is to be late hears first, by calls that no recorder sees, that all others are about to call: it comes last however late
 * they are. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))

static int rank;
static MPI_Comm between;

static void pause_for(int milliseconds) {
  const struct timespec pause = {0, milliseconds * 1000000};
  nanosleep(&pause, NULL);
}

/* What the ranks other than `late` say before the call in which some wait for it. */
static void say_ready(int late) { PMPI_Send(NULL, 0, MPI_BYTE, late, 1, between); }

static void hear_all(void) {
  for (int from = 0; from < 4; from++)
    if (from != rank) PMPI_Recv(NULL, 0, MPI_BYTE, from, 1, between, MPI_STATUS_IGNORE);
}

/* In a function of its own, so that no wait in it counts for the function that is measured. */
NOINLINE static void meet_before(void) { MPI_Barrier(between); }

/* `late` comes later than all others. */
static void come_late(int late, int milliseconds) {
  if (rank != late) {
    say_ready(late);
    return;
  }
  hear_all();
  pause_for(milliseconds);
}

NOINLINE static void receive_late(void) {
  int value = 1;
  meet_before();
  come_late(1, 80);
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

NOINLINE static void wait_for_the_last(void) {
  MPI_Request requests[3];
  int values[3] = {0};
  meet_before();
  if (rank == 1 || rank == 3) MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
  for (int from = 1; rank == 0 && from < 4; from++)
    MPI_Irecv(&values[from - 1], 1, MPI_INT, from, 4, MPI_COMM_WORLD, &requests[from - 1]);
  come_late(2, 64);
  if (rank == 2) MPI_Send(&rank, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
  if (rank == 0) MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

NOINLINE static void wait_for_progress(void) {
  static char out[1 << 20], in[1 << 20];
  MPI_Request requests[2];
  meet_before();
  come_late(3, 0);
  if (rank != 0 && rank != 3) return;
  MPI_Irecv(in, sizeof in, MPI_CHAR, 3 - rank, 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, sizeof out, MPI_CHAR, 3 - rank, 5, MPI_COMM_WORLD, &requests[1]);
  if (rank == 3) pause_for(56); /* without a call that would move the messages */
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* A receiver that is in a call of the MPI before it is late could let Intel MPI complete what is sent then: the sender sends after it
 * has said that it is ready. */
static char large[1 << 20];

NOINLINE static void receive_large(int receiver, int late_milliseconds, int tag) {
  come_late(receiver, late_milliseconds);
  if (rank == receiver) MPI_Recv(large, sizeof large, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

NOINLINE static void send_to_late(void) {
  MPI_Request request;
  meet_before();
  receive_large(2, 72, 6);
  if (rank != 0) return;
  MPI_Isend(large, sizeof large, MPI_CHAR, 2, 6, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

NOINLINE static void start_to_late(void) {
  MPI_Request request;
  int index;
  meet_before();
  receive_large(1, 36, 7);
  if (rank != 0) return;
  MPI_Send_init(large, sizeof large, MPI_CHAR, 1, 7, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

NOINLINE static void meet(void) {
  meet_before();
  come_late(3, 48);
  MPI_Barrier(MPI_COMM_WORLD);
}

NOINLINE static void hear(void) {
  int value = 5;
  meet_before();
  come_late(2, 40);
  MPI_Bcast(&value, 1, MPI_INT, 2, MPI_COMM_WORLD);
}

NOINLINE static void collect(void) {
  int sum = 0;
  meet_before();
  come_late(1, 32);
  MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &between);
  for (int round = 0; round < rounds; round++) {
    receive_late();
    wait_for_the_last();
    wait_for_progress();
    send_to_late();
    start_to_late();
    meet();
    hear();
    collect();
  }
  MPI_Comm_free(&between);
  MPI_Finalize();
  return 0;
}
