/* Orders items by keys in linear time. */
#ifndef EARLYBIRD_MODELS_ORDER_H
#define EARLYBIRD_MODELS_ORDER_H

#include <stdint.h>

/* Rearranges order[0 .. num - 1] so that key[order[i]] ascends; items with equal keys keep their order. scratch has room for
 * num items. */
void eb_order_by(const uint64_t *key, int64_t num, uint32_t *order, uint32_t *scratch);

#endif
