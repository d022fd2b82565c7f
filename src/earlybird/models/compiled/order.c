/* Radix sort, from the lowest digit up; digits in which all keys agree are skipped. */
#include "order.h"

#include <string.h>

enum { DIGIT_BITS = 11, NUM_VALUES = 1 << DIGIT_BITS };

void eb_order_by(const uint64_t *key, int64_t num, uint32_t *order, uint32_t *scratch) {
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
