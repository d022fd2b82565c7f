/* The table of live handles: chained buckets that grow, changed by one thread at a time, read by any. */
#include "partitioned/channel/requests.h"

#include <stdlib.h>

#include "partitioned/process/world.h"

#define FIRST_BUCKETS 256

_Atomic(eb_bucket_array *) eb_buckets;
atomic_uint eb_table_version;
int eb_num_live;

static eb_bucket_array *make_array(size_t num) {
  eb_bucket_array *array = calloc(1, sizeof *array + num * sizeof array->buckets[0]);
  if (array) array->mask = num - 1;
  return array;
}

static void put(eb_bucket_array *array, eb_entry *entry) {
  _Atomic(eb_entry *) *bucket = &array->buckets[eb_handle_hash(atomic_load(&entry->handle)) & array->mask];
  atomic_store(&entry->next, atomic_load(bucket));
  atomic_store(bucket, entry);
}

/* Arrays that are kept for searches are together smaller than the newest. */
static void move_entries(eb_bucket_array *array, eb_bucket_array *larger) {
  for (size_t b = 0; b <= array->mask; b++) {
    for (eb_entry *entry = atomic_load(&array->buckets[b]); entry;) {
      eb_entry *const next = atomic_load(&entry->next);
      put(larger, entry);
      entry = next;
    }
  }
  larger->smaller = array;
  atomic_store(&eb_buckets, larger);
}

int eb_requests_add(eb_entry *entry) {
  eb_bucket_array *array = atomic_load(&eb_buckets);
  if (!array) {
    array = make_array(FIRST_BUCKETS);
    if (!array) return -1;
    atomic_store(&eb_buckets, array);
  }
  /* Made before the table is seen to change: meanwhile every search that fails goes round and round. */
  eb_bucket_array *const larger = (size_t)eb_num_live > array->mask ? make_array(4 * (array->mask + 1)) : NULL;
  atomic_fetch_add(&eb_table_version, 1);
  if (larger) { /* else, with no memory left, longer chains: slower, not wrong */
    move_entries(array, larger);
    array = larger;
  }
  put(array, entry);
  atomic_fetch_add(&eb_table_version, 1);
  __atomic_fetch_add(&eb_num_live, 1, __ATOMIC_RELAXED);
  return 0;
}

void eb_requests_remove(eb_entry *entry) {
  eb_bucket_array *const array = atomic_load(&eb_buckets);
  _Atomic(eb_entry *) *at = &array->buckets[eb_handle_hash(atomic_load(&entry->handle)) & array->mask];
  atomic_fetch_add(&eb_table_version, 1);
  while (atomic_load(at) != entry) at = &atomic_load(at)->next;
  atomic_store(at, atomic_load(&entry->next));
  atomic_store(&entry->handle, MPI_REQUEST_NULL);
  atomic_fetch_add(&eb_table_version, 1);
  __atomic_fetch_sub(&eb_num_live, 1, __ATOMIC_RELAXED);
}
