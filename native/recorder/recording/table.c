/* Grows the table of a thread. */
#include "recorder/recording/table.h"

#include <stdlib.h>

#define FIRST_BITS 6
#define FIRST_CAPACITY 64
#define LARGEST_CAPACITY 65536

static void put(eb_entry **index, uint32_t bits, eb_entry *entry) {
  const uint32_t mask = (1u << bits) - 1;
  uint32_t at = (uint32_t)eb_table_hash(entry->what, entry->peer) & mask;
  while (index[at]) at = (at + 1) & mask;
  index[at] = entry;
}

static bool grow_index(eb_table *table) {
  const uint32_t bits = table->index ? table->index_bits + 1 : FIRST_BITS;
  eb_entry **index = calloc((size_t)1 << bits, sizeof *index);
  if (!index) return false;
  for (eb_block *block = table->first; block; block = block->next)
    for (uint32_t e = 0; e < block->num; e++) put(index, bits, &block->entries[e]);
  free(table->index);
  table->index = index;
  table->index_bits = bits;
  return true;
}

/* In blocks that stay where they are, each twice as large as the one before: readers follow the list without a lock. */
static bool grow_blocks(eb_table *table) {
  const uint32_t doubled = table->last ? 2 * table->last_capacity : FIRST_CAPACITY;
  const uint32_t capacity = doubled < LARGEST_CAPACITY ? doubled : LARGEST_CAPACITY;
  eb_block *block = calloc(1, sizeof *block + capacity * sizeof block->entries[0]);
  if (!block) return false;
  __atomic_store_n(table->last ? &table->last->next : &table->first, block, __ATOMIC_RELEASE);
  table->last = block;
  table->last_capacity = capacity;
  return true;
}

eb_entry *eb_table_add(eb_table *table, uint64_t what, int32_t peer) {
  const bool is_crowded = !table->index || 2 * (table->num + 1) > 1u << table->index_bits;
  if (is_crowded && !grow_index(table)) return NULL;
  if ((!table->last || table->last->num == table->last_capacity) && !grow_blocks(table)) return NULL;
  eb_entry *entry = &table->last->entries[table->last->num];
  entry->what = what;
  entry->peer = peer;
  __atomic_store_n(&table->last->num, table->last->num + 1, __ATOMIC_RELEASE);
  table->num++;
  put(table->index, table->index_bits, entry);
  return entry;
}
