/* An MPI program in a shared library, which a host without MPI loads for itself alone, as Python does with mpi4py. */
#include <mpi.h>
#include <string.h>

enum { PARTITIONS = 4, BYTES = 1000, TIMES = 4 };

int run(int with_threads) {
  static unsigned char data[PARTITIONS][BYTES];
  int level, rank, wrong = 0;
  MPI_Request request;
  const int rc = with_threads ? MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) : MPI_Init(NULL, NULL);
  if (rc != MPI_SUCCESS) return 3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Psend_init(data, PARTITIONS, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else MPI_Precv_init(data, PARTITIONS, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int time = 1; time <= TIMES; time++) {
    memset(data, rank == 0 ? time : 0, sizeof data);
    MPI_Start(&request);
    for (int k = 0; rank == 0 && k < PARTITIONS; k++) MPI_Pready(k, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int k = 0; k < PARTITIONS; k++) wrong += data[k][0] != time || data[k][BYTES - 1] != time;
  }
  MPI_Request_free(&request);
  MPI_Finalize();
  return wrong != 0;
}
