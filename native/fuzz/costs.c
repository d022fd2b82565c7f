/* The costs of one level: refused and nothing changed, or protocols in order. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/segmentation/cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const eb_cost before = {.num = 1, .protocols = {{0, 1, 2, 3}}};
  eb_cost cost = before;
  if (!eb_cost_parse((const char *)data, (int)size, &cost)) {
    if (memcmp(&cost, &before, sizeof cost) != 0) abort();
    return 0;
  }
  if (cost.num < 1 || cost.num > EB_COST_MAX_PROTOCOLS || cost.protocols[0].min_bytes != 0) abort();
  for (int p = 0; p < cost.num; p++) {
    const int64_t bytes = cost.protocols[p].min_bytes;
    if (p > 0 && bytes <= cost.protocols[p - 1].min_bytes) abort();
    if (isnan(eb_cost_time_s(&cost, bytes)) || eb_cost_overhead_s(&cost, bytes) < 0) abort();
  }
  if (eb_cost_bandwidth_bytes_per_s(&cost) <= 0) abort();
  return 0;
}
