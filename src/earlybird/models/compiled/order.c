/* Radix sort, from the lowest digit up; digits in which all keys agree are skipped. Few items are inserted one by one. */
#include "order.h"

#include <string.h>

enum { DIGIT_BITS = 11, NUM_VALUES = 1 << DIGIT_BITS, MAX_INSERTED = 48 };

static void insert_all(const uint64_t *key, int64_t num, uint32_t *order) {
  for (int64_t i = 1; i < num; i++) {
    const uint32_t item = order[i];
    int64_t at = i;
    for (; at > 0 && key[order[at - 1]] > key[item]; at--) order[at] = order[at - 1];
    order[at] = item;
  }
}

void eb_order_by(const uint64_t *key, int64_t num, uint32_t *order, uint32_t *scratch) {
  if (num <= MAX_INSERTED) {
    insert_all(key, num, order);
    return;
  }
  uint64_t varying = 0;
  for (int64_t i = 1; i < num; i++) varying |= key[i] ^ key[0];
  for (int shift = 0; shift < 64 && varying >> shift; shift += DIGIT_BITS) {
    if (!((varying >> shift) & (NUM_VALUES - 1))) continue;
    int64_t place[NUM_VALUES + 1] = {0};
    for (int64_t i = 0; i < num; i++) place[((key[i] >> shift) & (NUM_VALUES - 1)) + 1]++;
    for (int value = 0; value < NUM_VALUES; value++) place[value + 1] += place[value];
    for (int64_t i = 0; i < num; i++) scratch[place[(key[order[i]] >> shift) & (NUM_VALUES - 1)]++] = order[i];
    memcpy(order, scratch, (size_t)num * sizeof *order);
  }
}
