/* Waits for requests by a binding whose frame grows with their number, as those of Intel MPI for mpi_f08 do. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#ifdef BINDING
/* What tells a library of bindings. */
void mpi_wait_(void) {}

void grown_waitall(int num, MPI_Request *requests) {
  MPI_Request own[num];
  memcpy(own, requests, sizeof own);
  MPI_Waitall(num, own, MPI_STATUSES_IGNORE);
  memcpy(requests, own, sizeof own);
}
#else
void grown_waitall(int num, MPI_Request *requests);

__attribute__((noinline)) void wait_for_many(int num, MPI_Request *requests) {
  grown_waitall(num, requests);
}

__attribute__((noinline)) void wait_for_few(int num, MPI_Request *requests) {
  grown_waitall(num, requests);
}

/* The larger frame comes first: that of the smaller one, taken for as large, would reach beyond the stack. */
int main(int argc, char **argv) {
  const int most = 100000, few[] = {1, 41};
  MPI_Request *requests = malloc(most * sizeof *requests);
  MPI_Init(&argc, &argv);
  for (int k = 0; k < most; k++) requests[k] = MPI_REQUEST_NULL;
  for (int k = 0; k < 10; k++) wait_for_many(most, requests);
  for (int k = 0; k < 10; k++) wait_for_few(few[k % 2], requests);
  return MPI_Finalize();
}
#endif
