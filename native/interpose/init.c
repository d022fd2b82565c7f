/* MPI_Init, MPI_Init_thread, MPI_Finalize: where the library's work begins and ends. */
#include <stdlib.h>

#include "interpose/interpose.h"
#include "partitioned/loaded.h"

static int begun(int rc) {
  if (rc == MPI_SUCCESS && eb_loaded_mpi_is_ours()) eb_world_begin();
  return rc;
}

/* Status 2, that of wrong input: there is no communicator yet whose error handler could be called. */
static void need_mpi(void) {
  if (!eb_loaded_mpi_can_be_called()) exit(2);
}

EB_EXPORT int MPI_Init(int *argc, char ***argv) {
  int provided;
  need_mpi();
  if (eb_settings_wants_progress_thread()) return begun(PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided));
  return begun(PMPI_Init(argc, argv));
}

EB_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  need_mpi();
  if (eb_settings_wants_progress_thread()) required = MPI_THREAD_MULTIPLE;
  return begun(PMPI_Init_thread(argc, argv, required, provided));
}

EB_EXPORT int MPI_Finalize(void) {
  eb_world_end();
  return PMPI_Finalize();
}
