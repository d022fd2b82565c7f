/* Which thread is running, and how a thread counts without locked instructions while no other one counts. */
#ifndef EB_THREAD_H
#define EB_THREAD_H

#include <stdbool.h>

/* What the library keeps for a thread. */
typedef struct {
  void *recent; /* the entry that this thread has found last: see channel/requests.h */
} eb_thread;

extern _Thread_local eb_thread eb_this_thread __attribute__((tls_model("initial-exec")));

/* Identifies the thread while it lives. */
static inline const void *eb_thread_id(void) { return &eb_this_thread; }

/* In MPI_Init. Below MPI_THREAD_MULTIPLE a correct program has one thread at a time in MPI calls. */
void eb_thread_begin(bool is_multiple);

/* Who may count by plain loads and stores what it starts: this thread, or nobody (NULL). */
const void *eb_thread_owner(void);

/* Threads take turns, or are concurrent, and will be: starts have no owner from now on. */
void eb_thread_end_owners(void);

/* For a thread that counts beside an owner: the owner's earlier stores can be read from now on, and its later loads read what
 * this thread has stored. */
void eb_thread_fence_owner(void);

#endif
