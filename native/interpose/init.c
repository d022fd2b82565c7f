/* MPI_Init, MPI_Init_thread, MPI_Finalize: where the library's work begins and ends. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

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
  if (!eb_loaded_mpi_can_be_called()) exit(2);
  serves = eb_loaded_may_serve();
}

static bool wants_threads(void) { return serves && eb_settings_wants_progress_thread(); }

typedef int init_fn(int *, char ***);
typedef int init_thread_fn(int *, char ***, int, int *);
typedef int finalize_fn(void);

/* The function of a tool that was loaded after us, or the MPI's own: tools begin and end their work here. NULL where
 * PMPI's is to be called: an MPI that is loaded later, another copy of this library, a tool that calls us. */
static void *find_next(const char *name, bool is_nested) {
  Dl_info info;
  void *next = is_nested ? NULL : dlsym(RTLD_NEXT, name);
  return next && dladdr(next, &info) && info.dli_fname && !strstr(info.dli_fname, "libearlybird") ? next : NULL;
}

static int depth;

static int init(int *argc, char ***argv) {
  init_fn *next = (init_fn *)find_next("MPI_Init", depth > 1);
  return next ? next(argc, argv) : PMPI_Init(argc, argv);
}

static int init_thread(int *argc, char ***argv, int required, int *provided) {
  init_thread_fn *next = (init_thread_fn *)find_next("MPI_Init_thread", depth > 1);
  return next ? next(argc, argv, required, provided) : PMPI_Init_thread(argc, argv, required, provided);
}

static void enter(void) {
  if (++depth == 1) look_around();
}

/* A tool's MPI_Init may call MPI_Init_thread: the library's work begins when the outer call is done. */
static int leave(int rc) { return --depth == 0 ? begun(rc) : rc; }

EB_EXPORT int MPI_Init(int *argc, char ***argv) {
  int provided;
  enter();
  return leave(wants_threads() ? init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided) : init(argc, argv));
}

EB_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  enter();
  return leave(init_thread(argc, argv, wants_threads() ? MPI_THREAD_MULTIPLE : required, provided));
}

EB_EXPORT int MPI_Finalize(void) {
  static bool is_inside;
  finalize_fn *next = (finalize_fn *)find_next("MPI_Finalize", is_inside);
  eb_world_end();
  is_inside = true;
  return next ? next() : PMPI_Finalize();
}
