/* The results of searches, which outlive their requests: some programs create new requests for each transfer. */
#ifndef EB_LEARNED_H
#define EB_LEARNED_H

#include <stdbool.h>

#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/planner.h"

/* When partitions are ready, in two numbers: how long before the last one the first, and half of them. */
typedef struct {
  double first_s, half_s;
} eb_readiness;

/* Sorts ready_s. */
eb_readiness eb_readiness_of(double *ready_s, int num);

typedef struct {
  eb_readiness seen; /* when the search began */
  eb_cut cut;        /* its result */
  double promise;    /* the predicted time of the best over that of the result */
} eb_learned;

/* Does the result of a search for such a transfer hold for this one, whose readiness is result->seen? Then the rest of *result is
 * filled in. */
bool eb_learned_recall(const eb_transfer *transfer, eb_learned *result);
void eb_learned_keep(const eb_transfer *transfer, const eb_learned *result);

#endif
