/* The text of the cache, as it is and with the last line that it needs: refused, or costs and results in range that are read again
 * as they are written. */
#include "partitioned/cache/cache_file.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDENTITY "machine m\nmpi x\nsettings s\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_cut(const eb_kept_result *result) {
  const eb_cut *const cut = &result->cut;
  if (cut->num < 1 || cut->num > EB_CUT_MAX_SEGMENTS || cut->end_byte[cut->num - 1] != result->total_bytes) abort();
  for (int s = 0; s < cut->num; s++)
    if (cut->end_byte[s] <= (s ? cut->end_byte[s - 1] : 0)) abort();
}

static void check(const eb_cache *cache) {
  if (cache->num_results < 0 || cache->num_results > EB_CACHE_MAX_RESULTS) abort();
  for (int level = 0; level < EB_NUM_LEVELS; level++)
    if (cache->costs[level].cost.num < 0 || cache->costs[level].cost.num > EB_COST_MAX_PROTOCOLS) abort();
  for (int r = 0; r < cache->num_results; r++) {
    const eb_kept_result *const result = &cache->results[r];
    if (result->level < 0 || result->level >= EB_NUM_LEVELS || result->num_partitions < 1 || result->won_s < 0) abort();
    check_cut(result);
  }
}

static void read(const char *text, size_t length) {
  static eb_cache cache, again;
  static char first[EB_CACHE_MAX_BYTES], second[EB_CACHE_MAX_BYTES];
  if (!eb_cache_parse(text, length, IDENTITY, &cache)) return;
  check(&cache);
  const size_t first_length = eb_cache_print(&cache, IDENTITY, first);
  if (first_length > sizeof first || !eb_cache_parse(first, first_length, IDENTITY, &again)) abort();
  if (again.num_results != cache.num_results) abort();
  /* Numbers are rounded once. */
  const size_t second_length = eb_cache_print(&again, IDENTITY, second);
  if (second_length != first_length || memcmp(first, second, first_length) != 0) abort();
  for (int r = 0; r < cache.num_results; r++) eb_cache_add(&again, &cache.results[r]);
  check(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *const text = malloc(size + 32);
  if (!text) return 0;
  if (size > 0) memcpy(text, data, size);
  read(text, size);
  const int end = snprintf(text + size, 32, "end %016llx\n", (unsigned long long)eb_cache_hash(text, size));
  read(text, size + (size_t)end);
  free(text);
  return 0;
}
