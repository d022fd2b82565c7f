/* Queues of chunks in blocks: a ring for each server would be copied as it grows, and keep the memory of its longest time. */
#include "waiting.h"

#include <stdlib.h>

enum { MIN_BLOCKS = 64, MAX_BLOCKS = 1 << 14 }; /* of a slab: 128 KiB to 32 MiB */

void eb_waiting_free(eb_waiting_store *store) {
  for (uint32_t k = 0; k < store->num_slabs; k++) free(store->slabs[k]);
  free(store->slabs);
}

static bool add_slab(eb_waiting_store *store) {
  const uint32_t num = store->num_slabs == 0 ? MIN_BLOCKS : store->num_blocks < MAX_BLOCKS ? 2 * store->num_blocks : MAX_BLOCKS;
  void **slabs = realloc(store->slabs, (store->num_slabs + 1) * sizeof *slabs);
  if (!slabs) return false;
  store->slabs = slabs;
  eb_block *blocks = malloc(num * sizeof *blocks);
  if (!blocks) return false;
  slabs[store->num_slabs++] = blocks;
  store->num_blocks = num;
  for (uint32_t k = num; k-- > 0;) {
    blocks[k].next = store->unused;
    store->unused = &blocks[k];
  }
  return true;
}

bool eb_waiting_add(eb_waiting *waiting, eb_waiting_store *store, eb_chunk one) {
  if (!waiting->last || waiting->tail == EB_CHUNKS_OF_A_BLOCK) {
    if (!store->unused && !add_slab(store)) return false;
    eb_block *block = store->unused;
    store->unused = block->next;
    block->next = NULL;
    if (waiting->last) {
      waiting->last->next = block;
    } else {
      waiting->first = block;
      waiting->head = 0;
    }
    waiting->last = block;
    waiting->tail = 0;
  }
  waiting->last->chunks[waiting->tail++] = one;
  return true;
}

bool eb_waiting_take(eb_waiting *waiting, eb_waiting_store *store, eb_chunk *one) {
  eb_block *block = waiting->first;
  if (!block) return false;
  *one = block->chunks[waiting->head++];
  const bool is_last = block == waiting->last;
  if (waiting->head < (is_last ? waiting->tail : EB_CHUNKS_OF_A_BLOCK)) return true;
  waiting->first = block->next;
  if (is_last) waiting->last = NULL;
  waiting->head = 0;
  block->next = store->unused;
  store->unused = block;
  return true;
}
