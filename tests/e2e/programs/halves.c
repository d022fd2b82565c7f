/* Rank 0 sends an array in two halves, the second one late; rank 1 checks what it received. Macros choose how the program
 * reaches the calls. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HALF = 1000, TIMES = 3 };

#if defined(BY_POINTER)
static int (*psend_init)(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *) = MPI_Psend_init;
static int (*precv_init)(void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *) = MPI_Precv_init;
static int (*wait_for)(MPI_Request *, MPI_Status *) = MPI_Wait;
#elif defined(BY_NAME)
static int (*psend_init)(const void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
static int (*precv_init)(void *, int, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Info, MPI_Request *);
#else
#define psend_init MPI_Psend_init
#define precv_init MPI_Precv_init
#endif
#if defined(BY_PROFILING_NAME)
#define wait_for PMPI_Wait
#elif defined(BY_LIBRARY)
int wait_for(MPI_Request *request, MPI_Status *status);
#elif !defined(BY_POINTER)
#define wait_for MPI_Wait
#endif

#if defined(WITH_MAIN)
int main(int argc, char **argv) {
  int rank, wrong = 0;
  static char data[2][HALF];
  MPI_Request request;
#if defined(BY_NAME)
  *(void **)&psend_init = dlsym(RTLD_DEFAULT, "MPI_Psend_init");
  *(void **)&precv_init = dlsym(RTLD_DEFAULT, "MPI_Precv_init");
#endif
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#if defined(BY_ADDRESS)
  /* Makes an entry for MPI_Wait in a program that is not position independent. */
  if (printf("%.0s", (void *)MPI_Wait == NULL ? "" : "x") < 0) return 3;
#endif
  if (rank == 0) psend_init(data, 2, HALF, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  else precv_init(data, 2, HALF, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  for (int time = 1; time <= TIMES; time++) {
    memset(data, rank == 0 ? time : 0, sizeof data);
    MPI_Start(&request);
    for (int half = 0; rank == 0 && half < 2; half++) {
      usleep(20000);
      MPI_Pready(half, request);
    }
    wait_for(&request, MPI_STATUS_IGNORE);
    wrong += data[0][0] != time || data[1][HALF - 1] != time;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int last = rank;
  if (rank == 0) MPI_Send(&last, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&last, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  if (rank == 1) printf("data %s\n", wrong ? "wrong" : "right");
  MPI_Finalize();
  return 0;
}
#else
int wait_for(MPI_Request *request, MPI_Status *status) { return PMPI_Wait(request, status); }
#endif
