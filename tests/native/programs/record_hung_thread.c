/* A thread exchanges 500 messages with itself while a receive is open, and then waits for the receive for ever; the main thread
 * polls meanwhile and for a while after, and then ends the process: usage: record_hung_thread kill|exit */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLLS_AFTER = 400 };
static MPI_Comm own;
static int has_exchanged;

static void *exchange(void *none) {
  char sent = 0, received, never;
  MPI_Request request;
  MPI_Irecv(&never, 1, MPI_CHAR, 0, 7, own, &request);
  for (int k = 0; k < 500; k++)
    MPI_Sendrecv(&sent, 1, MPI_CHAR, 0, 1, &received, 1, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  usleep(100000);
  __atomic_store_n(&has_exchanged, 1, __ATOMIC_RELEASE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return none;
}

int main(int argc, char **argv) {
  pthread_t thread;
  int level, is_there;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_dup(MPI_COMM_SELF, &own);
  pthread_create(&thread, NULL, exchange, NULL);
  for (int after = 0; after < POLLS_AFTER; after += __atomic_load_n(&has_exchanged, __ATOMIC_ACQUIRE)) {
    MPI_Iprobe(0, 3, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    usleep(1000);
  }
  if (strcmp(argv[1], "exit") == 0) exit(9);
  _exit(9);
}
