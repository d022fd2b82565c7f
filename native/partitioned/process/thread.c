/* Asks the system for a barrier in all threads of the process, which costs those nothing that need none. */
#include "partitioned/process/thread.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/membarrier.h>)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_MEMBARRIER
#endif
#endif

_Thread_local eb_thread eb_this_thread __attribute__((tls_model("initial-exec")));

static atomic_bool has_owners;

#ifdef HAS_MEMBARRIER
static bool is_able(void) {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/* Registering takes 13 ms the first time in a process with several threads, later calls less than 1 us. */
static bool fence_others(void) {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) == 0 &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) == 0;
}
#else
static bool is_able(void) { return false; }
static bool fence_others(void) { return false; }
#endif

void eb_thread_begin(bool is_multiple) { atomic_store(&has_owners, !is_multiple && is_able()); }

const void *eb_thread_owner(void) { return atomic_load_explicit(&has_owners, memory_order_relaxed) ? eb_thread_id() : NULL; }

void eb_thread_end_owners(void) { atomic_store(&has_owners, false); }

void eb_thread_fence_owner(void) {
  if (fence_others()) return;
  /* A filter of system calls allows less than it said: no processor holds a store back for so long. */
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}
