/* Frees a handle that is no request, while another request is open. Where handles are numbers it is one of another kind of object,
 * else NULL: some MPIs take any other address for that of a request. */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv) {
  int received = 0;
  MPI_Request request, none;
  MPI_Init(&argc, &argv);
  MPI_Irecv(&received, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
  memset(&none, sizeof none == sizeof(int) ? 1 : 0, sizeof none);
  MPI_Request_free(&none);
  MPI_Send(&received, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
