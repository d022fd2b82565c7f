/* Chunks that wait at a server, first in, first out, in blocks that all servers share: they take the memory of what waits. */
#ifndef EARLYBIRD_MODELS_WAITING_H
#define EARLYBIRD_MODELS_WAITING_H

#include <stdbool.h>
#include <stdint.h>

/* Some bytes of a connection, or the acknowledgement of as many, which takes no time but has its place in the queues. What is
 * asked of a message stands here, for messages are far apart in memory. */
typedef struct {
  double arrived_s; /* when its last byte is there */
  int64_t bytes;
  uint32_t of; /* a message that is short, else a connection */
  uint32_t src, dst;
  uint16_t message_class; /* of its first byte */
  bool is_long, is_acknowledgement;
} eb_chunk;

enum { EB_CHUNKS_OF_A_BLOCK = 63 };

typedef struct eb_block {
  struct eb_block *next;
  eb_chunk chunks[EB_CHUNKS_OF_A_BLOCK];
} eb_block;

typedef struct {
  eb_block *first, *last;
  uint32_t head, tail; /* the first chunk of the first block, and after the last one of the last block */
} eb_waiting;

typedef struct {
  eb_block *unused;
  void **slabs;
  uint32_t num_slabs;
  uint32_t num_blocks; /* of the last slab */
} eb_waiting_store;

bool eb_waiting_add(eb_waiting *waiting, eb_waiting_store *store, eb_chunk one);
/* Takes the first chunk; false if none waits. */
bool eb_waiting_take(eb_waiting *waiting, eb_waiting_store *store, eb_chunk *one);
void eb_waiting_free(eb_waiting_store *store);

#endif
