/* Requests that are easily miscounted; then ranks 0 and 1 wait for each other in MPI_Recv. 2 ranks, or more.
 *
 * usage: stuck_requests all|persistent|null|wild|some|cancel|many
 *
 * all: those before `many` one after another.
 */
#include <mpi.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 50, MANY = 1500 };
static int rank, size;
static char sent[8], received[MANY][8];

/* Also of MPI_PROC_NULL, and inactive ones; statuses are ignored. */
static void persistent(void) {
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  MPI_Request requests[6];
  MPI_Recv_init(received[0], 8, MPI_CHAR, left, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(received[1], 8, MPI_CHAR, right, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Send_init(sent, 8, MPI_CHAR, left, 2, MPI_COMM_WORLD, &requests[2]);
  MPI_Send_init(sent, 8, MPI_CHAR, right, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Recv_init(received[2], 8, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &requests[4]); /* never started */
  requests[5] = MPI_REQUEST_NULL;
  for (int s = 0; s < STEPS; s++) {
    if (s % 2) MPI_Startall(4, requests);
    for (int r = 0; s % 2 == 0 && r < 4; r++) MPI_Start(&requests[r]);
    MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
  }
  for (int r = 0; r < 5; r++) MPI_Request_free(&requests[r]);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Those of MPI_PROC_NULL, which may be one, between others; waited for one by one, and together with none. */
static void null(void) {
  for (int s = 0; s < STEPS; s++) {
    MPI_Request requests[5];
    MPI_Status status;
    MPI_Irecv(received[0], 8, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, 8, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]);
    requests[2] = MPI_REQUEST_NULL;
    MPI_Irecv(received[1], 8, MPI_CHAR, (rank + size - 1) % size, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Isend(sent, 8, MPI_CHAR, (rank + 1) % size, 2, MPI_COMM_WORLD, &requests[4]);
    if (s % 2) MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    for (int r = 4; s % 2 == 0 && r >= 0; r--) MPI_Wait(&requests[r], s % 4 ? MPI_STATUS_IGNORE : &status);
    MPI_Recv(received[0], 8, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* Of any source or tag, of which only the status says what they have received; it is ignored. */
static void wild(void) {
  for (int s = 0; s < STEPS; s++) {
    MPI_Request requests[3];
    MPI_Irecv(received[0], 8, MPI_CHAR, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(received[1], 8, MPI_CHAR, (rank + size - 1) % size, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(sent, 8, MPI_CHAR, (rank + 1) % size, 3, MPI_COMM_WORLD, &requests[2]);
    MPI_Send(sent, 8, MPI_CHAR, (rank + 1) % size, 4, MPI_COMM_WORLD);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Sendrecv(sent, 8, MPI_CHAR, (rank + 1) % size, 5, received[0], 8, MPI_CHAR, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* In calls that complete some, and by tests; handles are used again at once. */
static void some(void) {
  for (int s = 0; s < STEPS; s++) {
    MPI_Request requests[4];
    int num = 0, indices[4], flag = 0, index;
    for (int r = 0; r < 4; r++) MPI_Irecv(received[r], 8, MPI_CHAR, (rank + size - 1) % size, r, MPI_COMM_WORLD, &requests[r]);
    for (int r = 0; r < 4; r++) MPI_Send(sent, 8, MPI_CHAR, (rank + 1) % size, r, MPI_COMM_WORLD);
    for (int done = 0; s % 4 == 0 && done < 4; done += num) MPI_Waitsome(4, requests, &num, indices, MPI_STATUSES_IGNORE);
    for (int done = 0; s % 4 == 1 && done < 4; done++) MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE);
    while (s % 4 == 2 && !flag) MPI_Testall(4, requests, &flag, MPI_STATUSES_IGNORE);
    for (int r = 0; s % 4 == 3 && r < 4; r++)
      for (flag = 0; !flag;) MPI_Test(&requests[r], &flag, MPI_STATUS_IGNORE);
  }
}

/* A receive that is cancelled is no message, and what follows is counted as before. */
static void cancel(void) {
  for (int s = 0; s < STEPS; s++) {
    MPI_Request request;
    MPI_Irecv(received[0], 8, MPI_CHAR, (rank + 1) % size, 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(sent, 8, MPI_CHAR, (rank + 1) % size, 5, received[0], 8, MPI_CHAR, (rank + size - 1) % size, 5, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
}

/* More than have places, whose keys collide. */
static void many(void) {
  static MPI_Request requests[2 * MANY];
  for (int r = 0; r < MANY; r++) MPI_Irecv(received[r], 8, MPI_CHAR, (rank + size - 1) % size, r % 7, MPI_COMM_WORLD, &requests[r]);
  for (int r = 0; r < MANY; r++) MPI_Isend(sent, 8, MPI_CHAR, (rank + 1) % size, r % 7, MPI_COMM_WORLD, &requests[MANY + r]);
  MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
  const char *const mode = argv[1];
  const int is_all = strcmp(mode, "all") == 0;
  alarm(60);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (is_all) sleep(2); /* until whoever watches has looked, calls are counted in the other way */
  if (is_all || strcmp(mode, "persistent") == 0) persistent();
  if (is_all || strcmp(mode, "null") == 0) null();
  if (is_all || strcmp(mode, "wild") == 0) wild();
  if (is_all || strcmp(mode, "some") == 0) some();
  if (is_all || strcmp(mode, "cancel") == 0) cancel();
  if (strcmp(mode, "many") == 0) many();
  if (rank < 2) MPI_Recv(received[0], 8, MPI_CHAR, 1 - rank, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
