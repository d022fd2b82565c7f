/* Three ranks create a communicator of all ranks, use it once, and free it, ROUNDS times: rank 0 sends to rank 1 in the first round
 * and to rank 2 in the others, so that each rank uses other ones. The first argument is how: dup, idup or split.
 *
 * Before that come as many duplicates by MPI_Comm_idup that nobody uses. */
#include <mpi.h>
#include <string.h>

enum { ROUNDS = 20 };

int main(int argc, char **argv) {
  int rank;
  char message[8] = "";
  MPI_Comm made;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < ROUNDS; round++) {
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&made);
  }
  for (int round = 0; round < ROUNDS; round++) {
    const int to = round == 0 ? 1 : 2;
    if (argc > 1 && strcmp(argv[1], "idup") == 0) {
      MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (argc > 1 && strcmp(argv[1], "split") == 0) {
      MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made);
    } else {
      MPI_Comm_dup(MPI_COMM_WORLD, &made);
    }
    if (rank == 0) MPI_Send(message, 8, MPI_BYTE, to, 0, made);
    if (rank == to) MPI_Recv(message, 8, MPI_BYTE, 0, 0, made, MPI_STATUS_IGNORE);
    MPI_Comm_free(&made);
  }
  MPI_Finalize();
  return 0;
}
