/* MPI_Init, MPI_Init_thread: where the library's work begins. (An attribute ends it, see library.c.) MPI_Finalize, and sessions. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/interpose.h"
#include "interpose/objects/fortran_bindings.h"
#include "interpose/objects/loaded.h"
#include "partitioned/library.h"

typedef int init_fn(int *, char ***);
typedef int init_thread_fn(int *, char ***, int, int *);

/* Is partitioned communication ours in this process? */
static bool serves;

/* Calls of MPI_Init and MPI_Init_thread within one another: a tool's MPI_Init may call MPI_Init_thread. */
static int depth;

static atomic_int num_sessions; /* that the program has open */

/* Before the MPI begins, because other ranks learn by then whether this one has the library. Status 2, that of wrong
 * input: there is no communicator yet whose error handler could be called. */
static void enter(void) {
  if (++depth > 1) return;
  eb_bindings_redirect();
  if (!eb_loaded_mpi_can_be_called()) exit(2);
  /* A session has begun the MPI, and made the exchange that other ranks learn by. */
  const eb_service service = num_sessions == 0 ? eb_loaded_service() : EB_INACTIVE;
  serves = service == EB_ACTIVE;
  /* A rank without the library still takes part, with the answer no: all ranks must decide alike. */
  if (service != EB_INACTIVE) eb_library_enlist(serves);
}

/* Whatever the program needs has its addresses by now. */
__attribute__((constructor)) static void redirect_bindings(void) {
  const char *off = getenv(EARLYBIRD_ENV_OFF);
  if (!off || !*off || strcmp(off, "0") == 0) eb_bindings_redirect();
}

static int leave(int rc) {
  if (--depth == 0 && rc == MPI_SUCCESS) eb_library_begin();
  return rc;
}

static bool wants_threads(void) { return serves && eb_config_wants_progress_thread(); }

/* The function of a tool that was loaded after us, which begins its work there, or the MPI's own. NULL where PMPI's is to
 * be called: with a tool that calls us, another copy of this library, an MPI that is loaded later. */
static void *find_next(const char *name) {
  Dl_info info;
  void *next = depth > 1 ? NULL : dlsym(RTLD_NEXT, name);
  return next && dladdr(next, &info) && info.dli_fname && !strstr(info.dli_fname, "libearlybird") ? next : NULL;
}

static int init(int *argc, char ***argv) {
  init_fn *next = (init_fn *)find_next("MPI_Init");
  return next ? next(argc, argv) : PMPI_Init(argc, argv);
}

static int init_thread(int *argc, char ***argv, int required, int *provided) {
  init_thread_fn *next = (init_thread_fn *)find_next("MPI_Init_thread");
  return next ? next(argc, argv, required, provided) : PMPI_Init_thread(argc, argv, required, provided);
}

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
  int (*next)(void) = (int (*)(void))find_next("MPI_Finalize");
  eb_library_before_finalize();
  return next ? next() : PMPI_Finalize();
}

#ifdef EB_HAS_SESSIONS
EB_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session) {
  const int rc = PMPI_Session_init(info, errhandler, session);
  if (rc == MPI_SUCCESS) num_sessions++;
  return rc;
}

EB_EXPORT int MPI_Session_finalize(MPI_Session *session) {
  const int rc = PMPI_Session_finalize(session);
  if (rc == MPI_SUCCESS) num_sessions--;
  return rc;
}
#endif
