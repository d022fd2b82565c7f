/* What is known of a window hangs on it as an attribute, so that the MPI reports when the window is freed. */
#include "recorder/recording/windows.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;

/* Increases when a window is freed: what threads remember of handles is void then. */
static uint32_t generation = 1;

/* The ranks of an epoch of MPI_Win_post or MPI_Win_start, as those of MPI_COMM_WORLD. */
typedef struct {
  int *ranks, count;
} epoch;

/* Hangs on the window. */
typedef struct {
  eb_communicator *communicator;
  eb_awaited_communicator *awaited; /* its place in the page; NULL: none */
  epoch epochs[2];                  /* by eb_epoch_side; changed by one thread at a time, as the standard wants */
} description;

typedef struct {
  uint32_t generation; /* 0: free */
  MPI_Win handle;
  description *of;
} window;

static __thread window remembered[EB_NUM_REMEMBERED] __attribute__((tls_model("initial-exec")));

static int forget(MPI_Win win, int key, void *value, void *extra) {
  description *const of = value;
  (void)win, (void)key, (void)extra;
  __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
  for (int side = 0; side < 2; side++) free(of->epochs[side].ranks);
  free(of);
  return MPI_SUCCESS;
}

static void create_keyval(void) {
  if (PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS) keyval = MPI_KEYVAL_INVALID;
}

static bool has_keyval(void) { return pthread_once(&once, create_keyval) == 0 && keyval != MPI_KEYVAL_INVALID; }

static description *set(MPI_Win win, eb_communicator *communicator) {
  description *const of = communicator ? calloc(1, sizeof *of) : NULL;
  if (!of) return NULL;
  of->communicator = communicator;
  if (PMPI_Win_set_attr(win, keyval, of) == MPI_SUCCESS) return of;
  free(of);
  return NULL;
}

static window *place_of(MPI_Win win) { return &remembered[eb_handle_hash((uintptr_t)win)]; }

void eb_window_created(const eb_span *span, MPI_Win win, MPI_Comm comm) {
  eb_communicator *const communicator = eb_span_communicator(span, comm);
  description *const of = has_keyval() ? set(win, communicator) : NULL;
  if (!of) return;
  of->awaited = eb_communicator_object(communicator, EB_OBJECT_WINDOW);
  *place_of(win) = (window){__atomic_load_n(&generation, __ATOMIC_ACQUIRE), win, of};
}

static description *describe(MPI_Win win) {
  MPI_Group group;
  if (PMPI_Win_get_group(win, &group) != MPI_SUCCESS) return NULL;
  eb_communicator *const communicator = eb_communicator_of_group(group);
  PMPI_Group_free(&group);
  return set(win, communicator);
}

static description *look_up(MPI_Win win) {
  void *of = NULL;
  int is_known = 0;
  if (!has_keyval() || PMPI_Win_get_attr(win, keyval, &of, &is_known) != MPI_SUCCESS) return NULL;
  return is_known ? of : describe(win);
}

/* Without a look at the handle, which may be wrong. */
static description *known(MPI_Win win) {
  const window *const place = place_of(win);
  return place->generation == __atomic_load_n(&generation, __ATOMIC_ACQUIRE) && place->handle == win ? place->of : NULL;
}

static description *of_window(const eb_span *span, MPI_Win win) {
  const uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
  if (span->has_failed) return NULL;
  description *of = known(win);
  if (of) return of;
  of = look_up(win);
  if (of) *place_of(win) = (window){now, win, of};
  return of;
}

eb_communicator *eb_window_communicator(const eb_span *span, MPI_Win win) {
  const description *const of = of_window(span, win);
  return of ? of->communicator : NULL;
}

static void enter(const eb_span *span, unsigned call, const description *of) {
  eb_open_call *const open = span->thread->open;
  if (!of || !of->awaited) return;
  open->communicator = of->awaited->number;
  span->thread->awaited->number = eb_awaited_enter(of->awaited, call, EB_PEER_NONE, EB_BYTES_UNKNOWN, open->site);
}

void eb_window_enters(const eb_span *span, MPI_Win win) {
  if (span->thread) enter(span, span->thread->open->call, known(win));
}

void eb_window_entered(const eb_span *span, unsigned call, MPI_Win win) {
  if (span->thread->awaited->number != 0) return;
  eb_open_call_change(span->thread->open);
  enter(span, call, of_window(span, win));
  eb_open_call_changed(span->thread->open);
}

static int32_t tag_of(eb_epoch_side side) { return side == EB_EPOCH_ACCESS ? EB_TAG_POSTED : EB_TAG_COMPLETED; }

static void begin_epoch(description *of, eb_epoch_side side, MPI_Group group) {
  if (!of || !of->awaited) return;
  epoch *const changed = &of->epochs[side];
  free(changed->ranks);
  changed->count = 0;
  changed->ranks = eb_group_ranks(group, &changed->count);
  for (int r = 0; side == EB_EPOCH_EXPOSURE && changed->ranks && r < changed->count; r++)
    eb_awaited_message(true, of->awaited->number, changed->ranks[r], EB_TAG_POSTED, EB_BYTES_UNKNOWN);
}

void eb_window_epoch(const eb_span *span, MPI_Win win, eb_epoch_side side, MPI_Group group) {
  begin_epoch(of_window(span, win), side, group);
}

void eb_window_starts(const eb_span *span, MPI_Win win, MPI_Group group) {
  if (span->thread) begin_epoch(known(win), EB_EPOCH_ACCESS, group);
}

/* Keys that no request has: handles of requests and messages have their highest bits otherwise. */
static uint64_t key_of(const eb_span *span, int r) {
  return (uint64_t)3 << 62 | (uint64_t)span->thread->number << 24 | (uint32_t)r;
}

void eb_window_awaits(const eb_span *span, MPI_Win win, eb_epoch_side side) {
  const description *const of = span->thread ? known(win) : NULL;
  if (!of || !of->awaited) return;
  const epoch *const waits = &of->epochs[side];
  for (int r = 0; waits->ranks && r < waits->count; r++) {
    const uint32_t place = eb_awaited_place(key_of(span, r), EB_AWAITED_RECEIVE);
    const eb_awaited_request awaited = {
        .thread = UINT16_MAX,
        .posted_ticks = span->begin_ticks,
        .bytes = EB_BYTES_UNKNOWN,
        .call = span->thread->open->call,
        .communicator = of->awaited->number,
        .peer = waits->ranks[r],
        .tag = tag_of(side),
        .kind = EB_AWAITED_RECEIVE,
        .site = span->thread->open->site,
    };
    if (place != EB_AWAITED_REQUESTS) eb_awaited_post(place, key_of(span, r), &awaited);
    eb_awaited_mark(key_of(span, r), span->thread->number);
  }
}

void eb_window_awaited(const eb_span *span, MPI_Win win, eb_epoch_side side, bool is_over) {
  description *const of = span->has_failed ? known(win) : of_window(span, win);
  if (!of || !of->awaited) return;
  epoch *const waited = &of->epochs[side];
  for (int r = 0; waited->ranks && r < waited->count; r++) {
    (void)eb_awaited_complete(key_of(span, r), &(eb_awaited_request){0});
    if (!is_over) continue;
    eb_awaited_message(false, of->awaited->number, waited->ranks[r], tag_of(side), EB_BYTES_UNKNOWN);
    if (side == EB_EPOCH_ACCESS)
      eb_awaited_message(true, of->awaited->number, waited->ranks[r], EB_TAG_COMPLETED, EB_BYTES_UNKNOWN);
  }
  if (is_over) waited->count = 0;
}

static int target_of(const description *of, int rank) {
  return rank == EB_ALL_RANKS ? EB_PEER_ANY : eb_world_rank(of->communicator, rank);
}

/* Of locks; those of epochs have another bit. */
static uint64_t key_of_lock(const description *of, int rank) {
  return (uint64_t)3 << 62 | (uint64_t)1 << 61 | (uint64_t)(of->awaited->number & 0xffff) << 32 | (uint32_t)rank;
}

void eb_window_concerns(const eb_span *span, MPI_Win win, int rank, int type) {
  const description *const of = span->thread && rank != MPI_PROC_NULL ? known(win) : NULL;
  if (!of || !of->awaited) return;
  eb_open_call *const open = span->thread->open;
  open->communicator = of->awaited->number;
  open->tag = type;
  open->peer = target_of(of, rank);
}

void eb_window_locked(const eb_span *span, unsigned call, MPI_Win win, int rank, int type) {
  const description *const of = rank != MPI_PROC_NULL ? of_window(span, win) : NULL;
  if (!of || !of->awaited) return;
  const uint64_t key = key_of_lock(of, rank);
  const uint32_t place = eb_awaited_place(key, EB_AWAITED_LOCK);
  if (place == EB_AWAITED_REQUESTS) return;
  const eb_awaited_request lock = {
      .posted_ticks = span->begin_ticks,
      .bytes = EB_BYTES_UNKNOWN,
      .site = span->thread->open->site,
      .call = call,
      .communicator = of->awaited->number,
      .peer = target_of(of, rank),
      .tag = type,
      .kind = EB_AWAITED_LOCK,
      .thread = UINT16_MAX,
  };
  eb_awaited_post(place, key, &lock);
}

void eb_window_unlocked(const eb_span *span, MPI_Win win, int rank) {
  const description *const of = rank != MPI_PROC_NULL ? of_window(span, win) : NULL;
  if (of && of->awaited) (void)eb_awaited_complete(key_of_lock(of, rank), &(eb_awaited_request){0});
}
