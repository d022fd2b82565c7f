/* What one run keeps for the next: costs of messages and results of trials, and their text. Uses no MPI and no files. */
#ifndef EB_CACHE_FILE_H
#define EB_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partitioned/segmentation/cost.h"
#include "partitioned/segmentation/planner.h"

enum { EB_INTRA_NODE, EB_INTER_NODE, EB_NUM_LEVELS };
/* What there are costs of: messages of each level, and the other paths within a node. */
enum { EB_RING = EB_NUM_LEVELS, EB_DIRECT, EB_NUM_COSTS };
enum { EB_CACHE_MAX_RESULTS = 64, EB_CACHE_MAX_BYTES = 65536, EB_CACHE_MAX_IDENTITY = 1024 };

/* Times of day in seconds since the epoch. */
typedef struct {
  eb_cost cost; /* num 0: none is kept */
  int64_t measured; /* when the cost was measured */
  int64_t tried;    /* when it was last measured again, whatever came of it */
  bool is_steady;   /* as in eb_calibration */
  bool is_doubted;  /* measured again, it was much slower, once */
} eb_kept_cost;

typedef struct {
  int level, num_partitions;
  unsigned paths; /* as in eb_learned_result */
  int64_t total_bytes;
  double first_s, half_s; /* as in eb_readiness */
  double won_s;           /* as in eb_learned_result */
  int64_t found;          /* when it was first kept */
  eb_cut cut;
} eb_kept_result;

typedef struct {
  eb_kept_cost costs[EB_NUM_COSTS];
  int num_results;
  eb_kept_result results[EB_CACHE_MAX_RESULTS];
} eb_cache;

/* Is it time to measure a cost (again)? Also if there is none. */
bool eb_kept_cost_is_due(const eb_kept_cost *kept, int64_t now);

/* Takes what was measured now, or leaves what is kept: what was measured on a busy machine replaces nothing better. */
void eb_kept_cost_renew(eb_kept_cost *kept, const eb_kept_cost *measured);

/* Are they of such transfers, with similar ready times, by the costs of the cache? */
bool eb_kept_result_is_alike(const eb_cache *cache, const eb_kept_result *a, const eb_kept_result *b);

/* Adds a result: a newer one replaces one of such a transfer, an older one is left out; if there are too many, the oldest goes. */
void eb_cache_add(eb_cache *cache, const eb_kept_result *result);

/* Drops results that are too old. */
void eb_cache_expire(eb_cache *cache, int64_t now);

/* Reads the text of a file; false if it is not one of this version and identity, complete and in range. *cache is then
 * undefined. */
bool eb_cache_parse(const char *text, size_t length, const char *identity, eb_cache *cache);

/* Writes the text into EB_CACHE_MAX_BYTES; returns its length. Results for which there is no place are left out. */
size_t eb_cache_print(const eb_cache *cache, const char *identity, char *text);

/* FNV-1a of 64 bits, which finds damage and makes names. */
uint64_t eb_cache_hash(const char *text, size_t length);

#endif
