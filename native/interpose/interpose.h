/* What the wrappers share. */
#ifndef EB_INTERPOSE_H
#define EB_INTERPOSE_H

#include "include/earlybird.h"
#include "partitioned/channel.h"
#include "partitioned/world.h"

/* The library is compiled with hidden symbols; the wrappers alone are seen. */
#define EB_EXPORT __attribute__((visibility("default")))

#define EB_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* What a wrapper does once partitioned requests live: apart, so that until then a wrapper is one load, one branch and a
 * jump to the MPI, without saving a register. */
#define EB_APART __attribute__((noinline))

/* No partitioned request lives: the one branch that every other program pays. */
static inline bool eb_none_live(void) { return EB_LIKELY(__atomic_load_n(&eb_num_live, __ATOMIC_RELAXED) == 0); }

/* The channel of a handle, NULL where it is not ours. */
static inline eb_channel *eb_ours(MPI_Request handle) { return eb_none_live() ? NULL : eb_requests_find(handle); }

/* Is any of them ours? */
static inline bool eb_any_ours(int count, const MPI_Request *handles) {
  if (eb_none_live()) return false;
  for (int r = 0; r < count; r++)
    if (eb_requests_find(handles[r])) return true;
  return false;
}

#endif
