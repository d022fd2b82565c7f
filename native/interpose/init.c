/* MPI_Init, MPI_Init_thread: where the library's work begins. (An attribute ends it, see world.c.) */
#include <stdlib.h>

#include "interpose/interpose.h"
#include "partitioned/loaded.h"

static int begun(int rc) {
  if (rc == MPI_SUCCESS) eb_world_begin();
  return rc;
}

/* Before the MPI begins, because other ranks learn by then whether this one has the library. Status 2, that of wrong
 * input: there is no communicator yet whose error handler could be called. */
static void begin(void) {
  if (!eb_loaded_mpi_can_be_called()) exit(2);
  if (eb_loaded_mpi_is_ours()) eb_world_enlist();
}

EB_EXPORT int MPI_Init(int *argc, char ***argv) {
  int provided;
  begin();
  if (eb_settings_wants_progress_thread()) return begun(PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided));
  return begun(PMPI_Init(argc, argv));
}

EB_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  begin();
  if (eb_settings_wants_progress_thread()) required = MPI_THREAD_MULTIPLE;
  return begun(PMPI_Init_thread(argc, argv, required, provided));
}
