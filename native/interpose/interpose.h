/* What the wrappers share. */
#ifndef EB_INTERPOSE_H
#define EB_INTERPOSE_H

#include "include/earlybird.h"
#include "partitioned/channel/channel.h"
#include "partitioned/process/world.h"

/* The library is compiled with hidden symbols; only the wrappers are visible. */
#define EB_EXPORT __attribute__((visibility("default")))

#define EB_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* The part of a wrapper for existing partitioned requests is a separate function, so that without them a wrapper is one
 * load, one branch and a jump to the MPI, without saving a register. */
#define EB_APART __attribute__((noinline))

/* No partitioned request exists: the only branch that other programs pay. */
static inline bool eb_none_live(void) { return EB_LIKELY(__atomic_load_n(&eb_num_live, __ATOMIC_RELAXED) == 0); }

/* The channel of a handle, NULL for a handle of the MPI. */
static inline eb_channel *eb_ours(MPI_Request handle) { return eb_none_live() ? NULL : eb_channel_find(handle); }

/* The same through a pointer, which the MPI's own call reports if it is NULL. */
static inline eb_channel *eb_at(const MPI_Request *handle) { return handle ? eb_channel_find(*handle) : NULL; }

/* Is any of them ours? Not if the array is NULL. */
static inline bool eb_any_ours(int count, const MPI_Request *handles) {
  if (eb_none_live() || !handles) return false;
  for (int r = 0; r < count; r++)
    if (eb_channel_find(handles[r])) return true;
  return false;
}

#endif
