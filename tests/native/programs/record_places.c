/* Meets at barriers from two functions; with BINDING by the MPI's Fortran binding, as a Fortran program does. */
#include <mpi.h>

#ifdef BINDING
void mpi_barrier_(MPI_Fint *comm, MPI_Fint *error);
#define BARRIER(comm)                                \
  {                                                  \
    MPI_Fint handle = MPI_Comm_c2f(comm), error = 0; \
    mpi_barrier_(&handle, &error);                   \
  }
#else
#define BARRIER(comm) MPI_Barrier(comm);
#endif

__attribute__((noinline)) void meet_first(MPI_Comm comm) {
  BARRIER(comm)
}

__attribute__((noinline)) void meet_second(MPI_Comm comm) {
  BARRIER(comm)
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  for (int k = 0; k < 10; k++) {
    meet_first(MPI_COMM_WORLD);
    meet_second(MPI_COMM_WORLD);
  }
  return MPI_Finalize();
}
