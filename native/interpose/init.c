/* MPI_Init, MPI_Init_thread, MPI_Finalize: where the library's work begins and ends. */
#include <stdlib.h>

#include "interpose/fortran/bindings.h"
#include "interpose/interpose.h"
#include "partitioned/loaded.h"

/* Is partitioned communication ours in this process? */
static bool serves;

static int begun(int rc) {
  if (rc == MPI_SUCCESS && serves) eb_world_begin();
  return rc;
}

/* Status 2, that of wrong input: there is no communicator yet whose error handler could be called. */
static void look_around(void) {
  eb_bindings_redirect();
  if (!eb_loaded_mpi_can_be_called()) exit(2);
  serves = eb_loaded_may_serve();
}

static bool wants_threads(void) { return serves && eb_settings_wants_progress_thread(); }

EB_EXPORT int MPI_Init(int *argc, char ***argv) {
  int provided;
  look_around();
  return begun(wants_threads() ? PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided) : PMPI_Init(argc, argv));
}

EB_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  look_around();
  return begun(PMPI_Init_thread(argc, argv, wants_threads() ? MPI_THREAD_MULTIPLE : required, provided));
}

EB_EXPORT int MPI_Finalize(void) {
  eb_world_end();
  return PMPI_Finalize();
}
