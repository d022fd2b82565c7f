/* What one thread has counted: an entry for every distinct phase, call, role, communicator, peer and size class.
 *
 * Only the thread itself writes to its table, so counting needs no lock. Another thread may read the table when the process
 * ends: entries never move and are never freed.
 */
#ifndef EB_TABLE_H
#define EB_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an entry is about. */
typedef enum {
  EB_ROLE_CALL,     /* calls without a message of their own to one peer; bytes: this rank's part of a collective, or of a file */
  EB_ROLE_SENT,     /* messages to the peer */
  EB_ROLE_RECEIVED, /* messages from the peer */
  EB_ROLE_PUT,      /* data that this rank moved to the peer, which makes no call for it */
  EB_ROLE_GOT,      /* data that this rank moved from the peer, in the same way */
  EB_ROLE_STARTED,  /* calls: starts of a persistent collective; bytes: this rank's part of it */
} eb_role;

/* Peers are ranks of MPI_COMM_WORLD, or one of these. */
enum {
  EB_PEER_NONE = -1,    /* the call names no peer */
  EB_PEER_NULL = -2,    /* MPI_PROC_NULL */
  EB_PEER_ANY = -3,     /* MPI_ANY_SOURCE, where the message is not known yet */
  EB_PEER_OUTSIDE = -4, /* a process outside of this MPI_COMM_WORLD */
};

/* 48 bytes: with its place in the index, less than a cache line for each distinct key. */
typedef struct {
  uint64_t what; /* eb_what: call, role, size class, phase, communicator */
  int32_t peer;
  uint32_t is_dirty; /* changed since it was written */
  uint64_t calls, messages, bytes, ticks;
} eb_entry;

typedef struct eb_block {
  struct eb_block *next;
  uint32_t num;
  eb_entry entries[];
} eb_block;

typedef struct {
  eb_entry **index; /* open addressing; NULL: free */
  uint32_t index_bits, num;
  eb_block *first, *last;
  uint32_t last_capacity;
} eb_table;

/* 0 for 0 bytes; class k > 0 holds 2^(k-1) <= bytes < 2^k. */
static inline unsigned eb_size_class(uint64_t bytes) { return bytes ? 64u - (unsigned)__builtin_clzll(bytes) : 0; }

/* 12, 4, 8, 16 and 24 bits. A program with 2^24 communicators has no memory for them. */
static inline uint64_t eb_what(unsigned call, eb_role role, unsigned size_class, uint32_t communicator) {
  return (uint64_t)call << 52 | (uint64_t)role << 48 | (uint64_t)size_class << 40 | (communicator & 0xffffff);
}
static inline uint64_t eb_what_in_phase(uint64_t what, uint32_t phase) { return what | (uint64_t)phase << 24; }
static inline unsigned eb_what_call(uint64_t what) { return (unsigned)(what >> 52); }
static inline unsigned eb_what_role(uint64_t what) { return (unsigned)(what >> 48) & 0xf; }
static inline unsigned eb_what_size_class(uint64_t what) { return (unsigned)(what >> 40) & 0xff; }
static inline uint32_t eb_what_phase(uint64_t what) { return (uint32_t)(what >> 24) & 0xffff; }
static inline uint32_t eb_what_communicator(uint64_t what) { return (uint32_t)what & 0xffffff; }

static inline uint64_t eb_table_hash(uint64_t what, int32_t peer) {
  const uint64_t mixed = (what ^ (uint64_t)(uint32_t)peer << 20) * 0x9e3779b97f4a7c15u;
  return mixed ^ mixed >> 29;
}

/* Adds an entry for a key that has none. NULL if memory is short. */
eb_entry *eb_table_add(eb_table *table, uint64_t what, int32_t peer);

static inline eb_entry *eb_table_entry(eb_table *table, uint64_t what, int32_t peer) {
  if (__builtin_expect(table->index != NULL, 1)) {
    const uint32_t mask = (1u << table->index_bits) - 1;
    for (uint32_t at = (uint32_t)eb_table_hash(what, peer) & mask;; at = (at + 1) & mask) {
      eb_entry *entry = table->index[at];
      if (!entry) break;
      if (entry->what == what && entry->peer == peer) return entry;
    }
  }
  return eb_table_add(table, what, peer);
}

/* One thread writes, others may read: no torn values, but no atomic addition either. */
static inline void eb_count(uint64_t *value, uint64_t by) {
  __atomic_store_n(value, __atomic_load_n(value, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
}

static inline void eb_entry_add(eb_entry *entry, uint64_t calls, uint64_t messages, uint64_t bytes, uint64_t ticks) {
  eb_count(&entry->calls, calls);
  eb_count(&entry->messages, messages);
  eb_count(&entry->bytes, bytes);
  eb_count(&entry->ticks, ticks);
  __atomic_store_n(&entry->is_dirty, 1, __ATOMIC_RELEASE);
}

#endif
