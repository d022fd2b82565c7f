/* Kinds of transfers: those with the same level, size and number of partitions, and similar readiness. What is learned of a kind
 * serves all its requests, also those that are created later, and those of the next run. */
#ifndef EB_LEARNED_H
#define EB_LEARNED_H

#include <stdbool.h>

#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/policy.h"

/* When partitions are ready, in two numbers: how long before the last one the first, and half of them. */
typedef struct {
  double first_s, half_s;
} eb_readiness;

/* Sorts ready_s. */
eb_readiness eb_readiness_of(double *ready_s, int num);

/* ---- Results: what was learned, without how ---- */

enum { EB_LEARNED_MAX_RESULTS = 64 };

typedef struct {
  bool is_inter_node;
  unsigned paths; /* bits: those that its transfers may use */
  int num_partitions;
  int64_t total_bytes;
  eb_readiness seen;
  eb_cut cut;
  double won_s; /* per start, over what was used before; 0: unknown, or one message is quickest */
  bool is_recalled; /* from an earlier run: no trial of this one has decided it */
} eb_learned_result;

/* Copies the results that trials of this process have decided; returns their number. */
int eb_learned_list(eb_learned_result *results, int max_results);
/* Adds the result of an earlier run: requests of the kind use it from their first possible start on, and check it later. The oldest
 * one is forgotten when there are more than EB_LEARNED_MAX_RESULTS. */
void eb_learned_add(const eb_learned_result *result);

/* ---- Kinds ---- */

typedef struct eb_kind eb_kind;

/* What a channel knows when it looks for its kind. */
typedef struct {
  const eb_transfer *transfer;
  const eb_planner_input *input;
  int max_segments;
  double further_s;      /* what a message costs the thread beyond its cost */
  int num_together;      /* as in eb_terms */
  const eb_cut *in_use;  /* num 0: more segments than a cut can have */
  uint64_t num_starts;   /* of the channel */
} eb_kind_query;

/* The kind of a channel, which shares it from now on; `before` is what it was, or NULL. NULL: there are too many kinds, and the
 * channel keeps its segments. */
eb_kind *eb_kind_join(const eb_kind_query *query, eb_kind *before, const void *channel);
void eb_kind_leave(eb_kind *kind, const void *channel);

/* The policy of a kind, under eb_lock. */
eb_policy *eb_kind_policy(eb_kind *kind);

#endif
