/* A receiver's MPI_Start fails after it has posted the receive of a message that its sender then never sends; both free the request, and
 * transfer by others with the same arguments. Prints "delivered" if these are right. The library calls the MPI by these functions. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 1 << 17, TAG = 30000, NUM_REQUESTS = 2, NUM_STARTS = 4 };

static int is_failing, num_posted;

int PMPI_Irecv(void *to, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
  static int (*next)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
  if (!next) next = (int (*)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))dlsym(RTLD_NEXT, "PMPI_Irecv");
  return is_failing && ++num_posted > 1 ? MPI_ERR_OTHER : next(to, count, type, source, tag, comm, request);
}

int PMPI_Start(MPI_Request *request) {
  static int (*next)(MPI_Request *);
  if (!next) next = (int (*)(MPI_Request *))dlsym(RTLD_NEXT, "PMPI_Start");
  return is_failing ? MPI_ERR_OTHER : next(request);
}

static char data[BYTES];

static void make(int rank, int tag, MPI_Request *request) {
  if (rank == 0) MPI_Psend_init(data, 1, BYTES, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_INFO_NULL, request);
  else MPI_Precv_init(data, 1, BYTES, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL, request);
}

static int transfer(int rank, int value, MPI_Request *request) {
  memset(data, rank == 0 ? value : 0, BYTES);
  MPI_Start(request);
  if (rank == 0) MPI_Pready(0, *request);
  return MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS && data[0] == value && data[BYTES - 1] == value;
}

int main(int argc, char **argv) {
  int rank, is_right = 1;
  MPI_Request request, first;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) make(rank, TAG + 1, &first);
  make(rank, TAG, &request);
  is_right &= transfer(rank, 1, &request);
  is_failing = rank == 1;
  if (rank == 1 && MPI_Start(&request) == MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 3);
  is_failing = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
  /* With the answer to this one the sender learns that the other is freed. */
  if (rank == 1) make(rank, TAG + 1, &first);
  is_right &= transfer(rank, 1, &first);
  for (int r = 0; r < NUM_REQUESTS; r++) {
    make(rank, TAG, &request);
    for (int s = 0; s < NUM_STARTS; s++) is_right &= transfer(rank, 2 + s, &request);
    MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Request_free(&first);
  if (rank == 1 && is_right) puts("delivered");
  MPI_Finalize();
  return 0;
}
