/* Two ranks in the middle of a transfer that never ends: of two partitions each makes one ready, and waits for both of the
 * other's. Each tells its process before it waits. */
#include <earlybird.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PARTITIONS = 2, BYTES = 1 << 18 };

int main(int argc, char **argv) {
  int rank, arrived = 0;
  MPI_Request send, receive;
  char *sent = calloc(PARTITIONS, BYTES), *received = calloc(PARTITIONS, BYTES);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Psend_init(sent, PARTITIONS, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
  MPI_Precv_init(received, PARTITIONS, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
  MPI_Start(&receive);
  MPI_Start(&send);
  MPI_Pready(0, send);
  while (!arrived) MPI_Parrived(receive, 0, &arrived);
  printf("waits %d\n", (int)getpid());
  fflush(stdout);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  puts("went on");
  return 0;
}
