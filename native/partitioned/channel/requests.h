/* From the user's request handles to the library's. */
#ifndef EB_REQUESTS_H
#define EB_REQUESTS_H

#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "partitioned/process/thread.h"

/* A channel's place in the table. */
typedef struct eb_entry {
  _Atomic(MPI_Request) handle; /* searches of other threads pass by it */
  atomic_uint num_markable;    /* partitions that MPI_Pready needs only mark and count in this start; 0: it does more, or fails */
  _Atomic(struct eb_entry *) next;
} eb_entry;

typedef struct eb_bucket_array {
  struct eb_bucket_array *smaller; /* the one before: a search may still be in it, so it is never freed */
  size_t mask;
  _Atomic(eb_entry *) buckets[];
} eb_bucket_array;

extern _Atomic(eb_bucket_array *) eb_buckets;
extern atomic_uint eb_table_version; /* odd while the table is being changed */

/* The number of partitioned requests of this process. Every completion call reads this first. */
extern int eb_num_live;

/* Handles are small integers or addresses: their low bits would use only a few buckets. */
static inline size_t eb_handle_hash(MPI_Request handle) {
  const uint64_t bits = (uint64_t)(uintptr_t)handle * UINT64_C(0x9E3779B97F4A7C15);
  return (size_t)(bits >> 32);
}

/* The entry that this thread has found last if it has this handle, else NULL. Entries of freed channels have no handle, and
 * channels are never returned to the system. */
static inline eb_entry *eb_requests_recent(MPI_Request handle) {
  eb_entry *const entry = eb_this_thread.recent;
  return entry && atomic_load_explicit(&entry->handle, memory_order_acquire) == handle ? entry : NULL;
}

static inline void eb_requests_remember(eb_entry *entry) { eb_this_thread.recent = entry; }

/* The entry of a handle, NULL for a handle of the MPI. Lock-free: entries are never returned to the system,
 * and a search that fails while the table changes is repeated. Every load acquires, so what a search saw of a change
 * it also sees in the version. */
static inline eb_entry *eb_requests_find(MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL) return NULL;
  for (;;) {
    const unsigned before = atomic_load_explicit(&eb_table_version, memory_order_acquire);
    eb_bucket_array *const array = atomic_load_explicit(&eb_buckets, memory_order_acquire);
    if (!array) return NULL;
    eb_entry *entry = atomic_load_explicit(&array->buckets[eb_handle_hash(handle) & array->mask], memory_order_acquire);
    for (; entry; entry = atomic_load_explicit(&entry->next, memory_order_acquire))
      if (atomic_load_explicit(&entry->handle, memory_order_acquire) == handle) return entry;
    if (before == atomic_load_explicit(&eb_table_version, memory_order_relaxed) && !(before & 1)) return NULL;
  }
}

/* Both are called under eb_lock. Returns 0, or -1 when memory is short. The handle must leave the table before
 * it is freed: MPIs give freed handles out again at once. */
int eb_requests_add(eb_entry *entry);
void eb_requests_remove(eb_entry *entry);

#endif
