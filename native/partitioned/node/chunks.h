/* What the paths through memory of a node have in common: how many segments they take, how a segment is divided into chunks, and the
 * numbers that count them. Uses no MPI. */
#ifndef EB_CHUNKS_H
#define EB_CHUNKS_H

#include <stdint.h>

/* More segments travel as messages. */
enum { EB_NODE_MAX_SEGMENTS = 128 };

/* A segment travels in eight chunks, whose bytes are a multiple of `step` (a power of two), between these limits. */
typedef struct {
  int64_t step, least, most;
} eb_chunking;

/* Both sides compute the same. */
static inline int64_t eb_chunk_bytes(eb_chunking of, int64_t num_bytes) {
  enum { NUM_CHUNKS = 8 };
  const int64_t eighth = (num_bytes / NUM_CHUNKS + of.step - 1) & -of.step;
  return eighth < of.least ? of.least : eighth > of.most ? of.most : eighth;
}

static inline int eb_num_chunks(eb_chunking of, int64_t num_bytes) {
  if (num_bytes <= of.least) return 1; /* a division takes as long as a small copy */
  const int64_t chunk = eb_chunk_bytes(of, num_bytes);
  return (int)((num_bytes + chunk - 1) / chunk);
}

/* What is shared of a segment is the number of a start, followed by that of chunks in these bits; a segment has at most 1 GiB. It never
 * falls: the sender begins a start when the one before it is complete, so the number of a later start, which may have other
 * segments, says that all of this one is done. */
enum { EB_CHUNK_BITS = 16 };

static inline uint64_t eb_chunk_count(uint64_t start, int num) { return start << EB_CHUNK_BITS | (uint64_t)num; }
static inline uint64_t eb_chunk_start(uint64_t count) { return count >> EB_CHUNK_BITS; }

#endif
