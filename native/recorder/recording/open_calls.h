/* The call in which each thread is, where other processes see it and where it stays after the process has been killed: a page
 * of a file that is mapped. What the calls wait for follows in the same page: see awaited.h.
 *
 * The counts of a hung program are in the other files, but what a thread never returns from is not counted. On a file system on
 * which a mapped page may end the program with SIGBUS, a shared one or one that copies on write, the page is written with the
 * recording and says when that was.
 */
#ifndef EB_OPEN_CALLS_H
#define EB_OPEN_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#define EB_OPEN_CALLS_MAGIC 0x314e45504f4245u /* "EBOPEN1" */
enum { EB_OPEN_CALLS_MAX = 63 };              /* threads; more are not kept */

typedef struct {
  uint64_t begin_ticks; /* 0: in no call */
  uint64_t site;
  uint32_t call, communicator; /* 0: none, or not known */
  int32_t peer, tag;           /* as in a trace */
  uint64_t bytes;              /* of its message; UINT64_MAX: not known */
  union {
    struct {
      uint32_t turn;     /* odd while the thread changes its place */
      uint32_t progress; /* calls entered and left, except polls, and requests completed: grows as the thread gets on */
    };
    uint64_t turn_and_progress; /* for whoever changes both at once: the turn is its lower half */
  };
  uint64_t ended_ticks;        /* of the last call, when it returned */
  uint64_t polling_ticks;      /* since when polls follow each other without success; 0: the call is no poll */
} eb_open_call;

/* Takes the place of the first call. */
typedef struct {
  uint64_t magic;
  uint32_t num, call_bytes;
  double tick_s;
  uint64_t begin_ticks;   /* of the recording */
  uint64_t written_ticks; /* when the page was written; 0: it is mapped, and as the process left it */
  uint64_t reserved[3];
} eb_open_calls_head;

/* The place changes: whoever reads compares the turns before and after. A change that was given up, because the thread was
 * cancelled or an error handler jumped out of it, ends with the next one. */
static inline void eb_open_call_change(eb_open_call *open) {
  __atomic_store_n(&open->turn, (open->turn + 1) | 1, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
}
static inline void eb_open_call_changed(eb_open_call *open) {
  __atomic_store_n(&open->turn, (open->turn | 1) + 1, __ATOMIC_RELEASE);
}

#endif
