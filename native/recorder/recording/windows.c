/* The communicator of a window hangs on it as an attribute, so that the MPI reports when the window is freed. */
#include "recorder/recording/windows.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;

/* Increases when a window is freed: what threads remember of handles is void then. */
static uint32_t generation = 1;

typedef struct {
  uint32_t generation; /* 0: free */
  MPI_Win handle;
  eb_communicator *communicator;
} window;

static __thread window remembered[EB_NUM_REMEMBERED] __attribute__((tls_model("initial-exec")));

static int forget(MPI_Win win, int key, void *value, void *extra) {
  (void)win, (void)key, (void)value, (void)extra;
  __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
  return MPI_SUCCESS;
}

static void create_keyval(void) {
  if (PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS) keyval = MPI_KEYVAL_INVALID;
}

static bool has_keyval(void) { return pthread_once(&once, create_keyval) == 0 && keyval != MPI_KEYVAL_INVALID; }

void eb_window_created(const eb_span *span, MPI_Win win, MPI_Comm comm) {
  eb_communicator *communicator = eb_span_communicator(span, comm);
  if (communicator && has_keyval()) (void)PMPI_Win_set_attr(win, keyval, communicator);
}

static eb_communicator *describe(MPI_Win win) {
  MPI_Group group;
  if (PMPI_Win_get_group(win, &group) != MPI_SUCCESS) return NULL;
  eb_communicator *communicator = eb_communicator_of_group(group);
  PMPI_Group_free(&group);
  return communicator && PMPI_Win_set_attr(win, keyval, communicator) == MPI_SUCCESS ? communicator : NULL;
}

static eb_communicator *look_up(MPI_Win win) {
  void *communicator = NULL;
  int is_known = 0;
  if (!has_keyval() || PMPI_Win_get_attr(win, keyval, &communicator, &is_known) != MPI_SUCCESS) return NULL;
  return is_known ? communicator : describe(win);
}

eb_communicator *eb_window_communicator(const eb_span *span, MPI_Win win) {
  const uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
  window *known = &remembered[eb_handle_hash((uintptr_t)win)];
  if (span->has_failed) return NULL;
  if (known->generation == now && known->handle == win) return known->communicator;
  eb_communicator *communicator = look_up(win);
  if (communicator) *known = (window){now, win, communicator};
  return communicator;
}
