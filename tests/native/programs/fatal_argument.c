/* A partitioned send of a type that is not committed, with the error handlers that MPI begins with: the job ends. */
#include <mpi.h>

int main(int argc, char **argv) {
  int word = 0;
  MPI_Datatype type;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Type_contiguous(1, MPI_INT, &type);
  MPI_Psend_init(&word, 1, 1, type, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Finalize();
  return 0;
}
