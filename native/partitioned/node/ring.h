/* Two slots in memory that sender and receiver share, each for all data of a start: start n uses slot n % 2. Uses no MPI.
 *
 * The sender copies a segment into the slot when its last partition is ready, in chunks, so that the receiver copies the first ones out
 * while the sender copies the next. A flag of the segment counts them. A sender's start n is complete when all segments are in
 * the slot and the slot of start n + 1 is free, which is when the receiver has read start n - 1. A standard send may wait for
 * that, because it may wait until the receiver has started start n, which is later. So no MPI_Pready ever waits, and nothing in a
 * slot needs the sender any more: the receiver may be in any call.
 */
#ifndef EB_RING_H
#define EB_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "partitioned/node/block.h"
#include "partitioned/node/chunks.h"

enum { EB_RING_LINE = 64, EB_RING_MIN_CHUNK = 2048, EB_RING_MAX_CHUNK = 32 * 1024 };
#define EB_RING_CHUNKING ((eb_chunking){EB_RING_LINE, EB_RING_MIN_CHUNK, EB_RING_MAX_CHUNK})

/* What the two sides share, followed by the slots. A flag counts the chunks of a segment that are in the slot. The flags of neighbouring
 * segments share a cache line: the receiver looks at all of them again and again. */
typedef struct {
  eb_block_header header;
  _Alignas(64) _Atomic uint64_t consumed; /* the last start that the receiver has read */
  _Alignas(64) _Atomic uint64_t filled[EB_NODE_MAX_SEGMENTS];
} eb_ring_memory;

/* One side. The members belong to ring.h and ring.c. */
typedef struct {
  eb_ring_memory *shared;
  char *slots;
  int64_t slot_bytes, total_bytes;
  uint64_t last[2]; /* the last start in each slot; 0: none */
  bool has_left;    /* the receiver's side: the memory may be another channel's by now */
} eb_ring;

/* The memory that the ring of a transfer needs. */
int64_t eb_ring_bytes(int64_t total_bytes);
/* Prepares memory for a new ring, before the receiver knows of it. */
void eb_ring_format(void *memory);
/* Of a sender and of a receiver, with memory of eb_ring_bytes. */
void eb_ring_begin(eb_ring *ring, void *memory, int64_t total_bytes);

/* ---- The sender ---- */

/* A start begins, and its slot is free. */
void eb_ring_open(eb_ring *ring, uint64_t start);

/* Copies a chunk of a segment into the slot of a start, after those before it; any number of threads, each another segment. */
void eb_ring_fill_chunk(const eb_ring *ring, uint64_t start, int segment, int64_t first_byte, const void *data, int64_t num_bytes,
                        int chunk);
/* All of them. */
void eb_ring_fill(const eb_ring *ring, uint64_t start, int segment, int64_t first_byte, const void *data, int64_t num_bytes);

/* Is the slot of this start free? Also once the receiver will read nothing more. */
static inline bool eb_ring_is_free(const eb_ring *ring, uint64_t start) {
  const uint64_t last = ring->last[start % 2];
  return atomic_load_explicit(&ring->shared->consumed, memory_order_acquire) >= last ||
         atomic_load_explicit(&ring->shared->header.is_left, memory_order_acquire);
}

/* ---- The receiver ---- */

/* Of a segment: at least 2 and at most 32 KiB. */
static inline int64_t eb_ring_chunk_bytes(int64_t num_bytes) { return eb_chunk_bytes(EB_RING_CHUNKING, num_bytes); }
static inline int eb_ring_num_chunks(int64_t num_bytes) { return eb_num_chunks(EB_RING_CHUNKING, num_bytes); }

/* How many chunks of a segment of a start are in the slot? At least so many as num_chunks, which the segment has, in later starts. */
static inline int eb_ring_num_filled(const eb_ring *ring, uint64_t start, int segment, int num_chunks) {
  const uint64_t flag = atomic_load_explicit(&ring->shared->filled[segment], memory_order_acquire);
  if (eb_chunk_start(flag) < start) return 0;
  return eb_chunk_start(flag) > start ? num_chunks : (int)(flag - eb_chunk_count(start, 0));
}

static inline char *eb_ring_at(const eb_ring *ring, uint64_t start, int64_t first_byte) {
  return ring->slots + (start % 2) * (uint64_t)ring->slot_bytes + first_byte;
}

/* All data of a start has been copied. */
static inline void eb_ring_consume(const eb_ring *ring, uint64_t start) {
  atomic_store_explicit(&ring->shared->consumed, start, memory_order_release);
}

/* The receiver will read nothing more; the memory may be used for something else once the sender is done with it, too. Has an
 * effect once. */
static inline void eb_ring_leave(eb_ring *ring) {
  if (ring->has_left) return;
  ring->has_left = true;
  atomic_store_explicit(&ring->shared->header.is_left, true, memory_order_release);
}

#endif
