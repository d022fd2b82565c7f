/* Windows: creation and synchronisation. Only time; for calls that name a target, for each target. */
#include "recorder/recording/windows.h"
#include "recorder/calls/wrap.h"

static void created(const eb_span *span, unsigned call, int rc, MPI_Comm comm, const MPI_Win *win) {
  const eb_communicator *communicator = eb_span_communicator(span, comm);
  eb_add_call(span, call, communicator, EB_PEER_NONE, 0);
  eb_span_entered(span, call, communicator, EB_PEER_NONE, EB_BYTES_UNKNOWN);
  if (rc == MPI_SUCCESS) eb_window_created(span, *win, comm);
}

#define CREATE(name, UNIT)                                                                                                     \
  EB_WRAP_ABOUT(EB_CALL_ALONE, name, (void *base, MPI_Aint bytes, UNIT disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win), \
                (base, bytes, disp_unit, info, comm, win), EB_ABOUT_ALL, created(&span, call, rc, comm, win))
#define ALLOCATE(name, UNIT)                                                                                                      \
  EB_WRAP_ABOUT(EB_CALL_ALONE, name, (MPI_Aint bytes, UNIT disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win), \
                (bytes, disp_unit, info, comm, baseptr, win), EB_ABOUT_ALL, created(&span, call, rc, comm, win))

CREATE(MPI_Win_create, int)
ALLOCATE(MPI_Win_allocate, int)
ALLOCATE(MPI_Win_allocate_shared, int)
EB_LARGE(CREATE(MPI_Win_create_c, MPI_Aint))
EB_LARGE(ALLOCATE(MPI_Win_allocate_c, MPI_Aint))
EB_LARGE(ALLOCATE(MPI_Win_allocate_shared_c, MPI_Aint))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win), EB_ABOUT_ALL,
              created(&span, call, rc, comm, win))
EB_WRAP(MPI_Win_attach, (MPI_Win win, void *base, MPI_Aint bytes), (win, base, bytes), EB_ONLY_TIME)
EB_WRAP(MPI_Win_detach, (MPI_Win win, const void *base), (win, base), EB_ONLY_TIME)
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Win_free, (MPI_Win * win), (win), if (span.thread && win) eb_window_enters(&span, *win),
              EB_ONLY_TIME)

static void synchronised(const eb_span *span, unsigned call, MPI_Win win) {
  eb_add_call(span, call, eb_window_communicator(span, win), EB_PEER_NONE, 0);
}

static void synchronised_with(const eb_span *span, unsigned call, int target, MPI_Win win) {
  const eb_communicator *communicator = eb_window_communicator(span, win);
  eb_add_call(span, call, communicator, span->has_failed ? EB_PEER_NONE : eb_world_rank(communicator, target), 0);
}

/* An exposure or access ends with a call that is an epoch of its own; see epoch.h. */
#define PART_ALL(name) EB_WRAP_PART(name, (MPI_Win win), (win), synchronised(&span, call, win))

EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Win_fence, (int assertion, MPI_Win win), (assertion, win), eb_window_enters(&span, win),
              synchronised(&span, call, win);
              eb_window_entered(&span, call, win))

/* With the MPI's own ways MPI_Win_start waits for no rank, and MPI_Win_complete for those of its group to call MPI_Win_post. */
EB_WRAP_PART(MPI_Win_post, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win), synchronised(&span, call, win);
             if (rc == MPI_SUCCESS) eb_window_epoch(&span, win, EB_EPOCH_EXPOSURE, group))
EB_WRAP_ABOUT(EB_CALL_PART, MPI_Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win),
              eb_window_starts(&span, win, group);
              eb_window_awaits(&span, win, EB_EPOCH_ACCESS), synchronised(&span, call, win);
              eb_window_awaited(&span, win, EB_EPOCH_ACCESS, false))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Win_complete, (MPI_Win win), (win), eb_window_awaits(&span, win, EB_EPOCH_ACCESS),
              synchronised(&span, call, win);
              eb_window_awaited(&span, win, EB_EPOCH_ACCESS, rc == MPI_SUCCESS))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Win_wait, (MPI_Win win), (win), eb_window_awaits(&span, win, EB_EPOCH_EXPOSURE),
              synchronised(&span, call, win);
              eb_window_awaited(&span, win, EB_EPOCH_EXPOSURE, rc == MPI_SUCCESS))
EB_WRAP(MPI_Win_test, (MPI_Win win, int *flag), (win, flag), synchronised(&span, call, win);
        if (rc == MPI_SUCCESS && *flag) eb_window_awaited(&span, win, EB_EPOCH_EXPOSURE, true))

/* With the MPI's own ways a lock may be waited for in any of these calls. */
#define TYPE (lock_type == MPI_LOCK_EXCLUSIVE ? EB_LOCK_EXCLUSIVE : EB_LOCK_SHARED)
#define LOCK(name, PARAMETERS, ARGUMENTS, rank, type, COUNTED)                                                  \
  EB_WRAP_ABOUT(EB_CALL_PART, name, PARAMETERS, ARGUMENTS, eb_window_concerns(&span, win, rank, type), COUNTED; \
                if (rc == MPI_SUCCESS) eb_window_locked(&span, call, win, rank, type))
#define UNLOCK(name, PARAMETERS, ARGUMENTS, rank, COUNTED)                                                               \
  EB_WRAP_ABOUT(EB_CALL_ALONE, name, PARAMETERS, ARGUMENTS, eb_window_concerns(&span, win, rank, EB_LOCK_NONE), COUNTED; \
                if (rc == MPI_SUCCESS) eb_window_unlocked(&span, win, rank))
#define FLUSH_ONE(name)                                                                                                       \
  EB_WRAP_ABOUT(EB_CALL_PART, name, (int rank, MPI_Win win), (rank, win), eb_window_concerns(&span, win, rank, EB_LOCK_NONE), \
                synchronised_with(&span, call, rank, win))
#define FLUSH_ALL(name)                                                                                               \
  EB_WRAP_ABOUT(EB_CALL_PART, name, (MPI_Win win), (win), eb_window_concerns(&span, win, EB_ALL_RANKS, EB_LOCK_NONE), \
                synchronised(&span, call, win))
LOCK(MPI_Win_lock, (int lock_type, int rank, int assertion, MPI_Win win), (lock_type, rank, assertion, win), rank, TYPE,
     synchronised_with(&span, call, rank, win))
LOCK(MPI_Win_lock_all, (int assertion, MPI_Win win), (assertion, win), EB_ALL_RANKS, EB_LOCK_SHARED, synchronised(&span, call, win))
UNLOCK(MPI_Win_unlock, (int rank, MPI_Win win), (rank, win), rank, synchronised_with(&span, call, rank, win))
UNLOCK(MPI_Win_unlock_all, (MPI_Win win), (win), EB_ALL_RANKS, synchronised(&span, call, win))
FLUSH_ONE(MPI_Win_flush)
FLUSH_ALL(MPI_Win_flush_all)
FLUSH_ONE(MPI_Win_flush_local)
FLUSH_ALL(MPI_Win_flush_local_all)
PART_ALL(MPI_Win_sync)
