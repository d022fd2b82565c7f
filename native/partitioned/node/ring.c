/* Lays out a ring, and copies segments into it. */
#include "partitioned/node/ring.h"

static int64_t round_up(int64_t bytes) { return (bytes + 63) & ~INT64_C(63); }

int64_t eb_ring_bytes(int64_t total_bytes) { return (int64_t)sizeof(eb_ring_memory) + 2 * round_up(total_bytes); }

void eb_ring_format(void *memory) {
  eb_ring_memory *const shared = memory;
  atomic_store_explicit(&shared->header.is_left, false, memory_order_relaxed);
  atomic_store_explicit(&shared->consumed, 0, memory_order_relaxed);
  for (int s = 0; s < EB_NODE_MAX_SEGMENTS; s++) atomic_store_explicit(&shared->filled[s], 0, memory_order_relaxed);
  atomic_thread_fence(memory_order_seq_cst); /* the receiver learns by a message where the memory is */
}

void eb_ring_begin(eb_ring *ring, void *memory, int64_t total_bytes) {
  *ring = (eb_ring){.shared = memory,
                    .slots = (char *)memory + sizeof(eb_ring_memory),
                    .slot_bytes = round_up(total_bytes),
                    .total_bytes = total_bytes};
}

/* The receiver has read the slot, so the caches of its processor have the lines. */
static void fetch_to_write(char *line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

/* The lines of a small transfer come while the program computes its first partition. */
void eb_ring_open(eb_ring *ring, uint64_t start) {
  enum { MAX_BYTES = 1024 };
  const int64_t num_bytes = ring->slot_bytes < MAX_BYTES ? ring->slot_bytes : MAX_BYTES;
  for (int64_t at = 0; at < num_bytes; at += EB_RING_LINE) fetch_to_write(eb_ring_at(ring, start, at));
  ring->last[start % 2] = start;
}

void eb_ring_fill_chunk(const eb_ring *ring, uint64_t start, int segment, int64_t first_byte, const void *data, int64_t num_bytes,
                        int chunk) {
  const int64_t chunk_bytes = eb_ring_chunk_bytes(num_bytes), at = chunk * chunk_bytes, left = num_bytes - at;
  const uint64_t flag = eb_chunk_count(start, chunk + 1);
  memcpy(eb_ring_at(ring, start, first_byte + at), (const char *)data + at, (size_t)(left < chunk_bytes ? left : chunk_bytes));
  atomic_store_explicit(&ring->shared->filled[segment], flag, memory_order_release);
}

void eb_ring_fill(const eb_ring *ring, uint64_t start, int segment, int64_t first_byte, const void *data, int64_t num_bytes) {
  const int num_chunks = eb_ring_num_chunks(num_bytes);
  for (int chunk = 0; chunk < num_chunks; chunk++) eb_ring_fill_chunk(ring, start, segment, first_byte, data, num_bytes, chunk);
}
