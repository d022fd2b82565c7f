/* The part of OpenMP's tool interface (OMPT, OpenMP 5.1 section 4) that the recorder uses: no compiler's header is needed, so
 * a recorder built by GCC serves programs that run on LLVM's or Intel's runtime.
 */
#ifndef EB_OMPT_H
#define EB_OMPT_H

#include <stdint.h>

typedef union {
  uint64_t value;
  void *ptr;
} ompt_data_t;

typedef void ompt_function(void);
typedef ompt_function *ompt_lookup_fn(const char *name);

typedef struct {
  int (*initialize)(ompt_lookup_fn *lookup, int initial_device_num, ompt_data_t *tool_data);
  void (*finalize)(ompt_data_t *tool_data);
  ompt_data_t tool_data;
} ompt_start_tool_result_t;

/* ompt_callbacks_t */
enum { OMPT_PARALLEL_BEGIN = 3, OMPT_PARALLEL_END = 4, OMPT_IMPLICIT_TASK = 7, OMPT_SYNC_REGION = 23 };
/* ompt_scope_endpoint_t */
enum { OMPT_SCOPE_BEGIN = 1, OMPT_SCOPE_END = 2 };
/* ompt_sync_region_t: the barrier at the end of a parallel region; runtimes before OpenMP 5.1 name all implicit ones alike. */
enum { OMPT_BARRIER_IMPLICIT = 2, OMPT_BARRIER_IMPLICIT_PARALLEL = 9 };

typedef int ompt_set_callback_fn(int event, ompt_function *callback);

#endif
