/* Tables of handles; each with few entries at a time, since what has ended is forgotten. */
#include "recorder/threads/known.h"

#include <stdbool.h>
#include <stdlib.h>

enum { NUM_BUCKETS = 256 };

typedef struct entry {
  struct entry *next;
  uint64_t key, identity;
  unsigned num;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *threads[NUM_BUCKETS], *barriers[NUM_BUCKETS];
static uint64_t num_barriers;

void eb_known_lock(void) { (void)pthread_mutex_lock(&lock); }
void eb_known_unlock(void) { (void)pthread_mutex_unlock(&lock); }

/* The pointer to the entry, or to where it would be. */
static entry **find(entry **table, uint64_t key) {
  entry **at = &table[key * 0x9e3779b97f4a7c15u >> 56];
  while (*at && (*at)->key != key) at = &(*at)->next;
  return at;
}

static void add(entry **table, uint64_t key, uint64_t identity, unsigned num) {
  entry **const at = find(table, key);
  if (!*at && !(*at = calloc(1, sizeof **at))) return;
  (*at)->key = key;
  (*at)->identity = identity;
  (*at)->num = num;
}

static uint64_t take(entry **table, uint64_t key) {
  eb_known_lock();
  entry **const at = find(table, key), *const found = *at;
  if (found) *at = found->next;
  eb_known_unlock();
  const uint64_t identity = found ? found->identity : 0;
  free(found);
  return identity;
}

void eb_known_thread_add(pthread_t thread, uint64_t serial) { add(threads, (uint64_t)thread, serial, 0); }
uint64_t eb_known_thread_take(pthread_t thread) { return take(threads, (uint64_t)thread); }

void eb_known_barrier_add(const pthread_barrier_t *barrier, unsigned num) {
  eb_known_lock();
  add(barriers, (uint64_t)(uintptr_t)barrier, ++num_barriers, num);
  eb_known_unlock();
}

eb_known_barrier eb_known_barrier_at(const pthread_barrier_t *barrier) {
  eb_known_lock();
  const entry *const found = *find(barriers, (uint64_t)(uintptr_t)barrier);
  const eb_known_barrier known = found ? (eb_known_barrier){found->identity, found->num} : (eb_known_barrier){0};
  eb_known_unlock();
  return known;
}

void eb_known_barrier_forget(const pthread_barrier_t *barrier) { (void)take(barriers, (uint64_t)(uintptr_t)barrier); }
