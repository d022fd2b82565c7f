/* Chooses the segments of a transfer from the times at which its partitions were ready. Knows no MPI. */
#ifndef EB_PLAN_H
#define EB_PLAN_H

#include <stdint.h>

#include "partitioned/cost.h"
#include "partitioned/segment.h"

/* Starts before a plan whose ready times it is made of: one may be disturbed, two of three are not. */
enum { EB_PLAN_RECORDS = 3 };

/* Plans are made at these starts of a request (2, 8, 32, 128, then every 256) and used from the next start on. */
bool eb_plan_is_due(uint64_t start);
/* The place among EB_PLAN_RECORDS that this start's ready times go to, or -1. */
int eb_plan_record(uint64_t start);
/* The records that a plan made at this start has: 1 or EB_PLAN_RECORDS, the last ones. */
int eb_plan_num_records(uint64_t start);
/* The median of the records of a partition, of which there are 1 or 3. */
double eb_plan_typical_s(const double *records_s, int num);

/* Seconds from the last partition's readiness to the arrival of all: segments leave in the order of their
 * readiness, each keeps the sender busy for its overhead, and they share one link (EQUATIONS.md section 1 joined
 * with the cost of a message). ready_s[s] and bytes[s] belong to segment s. */
double eb_plan_predict_s(const eb_cost *cost, int num, const double *ready_s, const int64_t *bytes);

/* The predicted best groups of contiguous partitions: their ends in bytes, at most max_segments of them, in
 * end_byte[]; returns how many, or -1 when memory is short. ready_s[p] is when partition p was ready. One segment is kept unless the gain is
 * clear (15 % and 0.3 us): a prediction is not exact, and fewer messages disturb the rest of the program less. */
int eb_plan_choose(const eb_cost *cost, int num_partitions, int64_t partition_bytes, const double *ready_s,
                   int max_segments, int64_t *end_byte);

#endif
