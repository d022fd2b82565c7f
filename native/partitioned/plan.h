/* Proposes cuts of a transfer into segments for the times at which its partitions were ready, and prices them. Knows no MPI. */
#ifndef EB_PLAN_H
#define EB_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/cost.h"
#include "partitioned/segment.h"

enum { EB_CUT_MAX_SEGMENTS = 32, EB_PLAN_MAX_CUTS = 6 };

/* A transfer cut into segments: their ends in bytes, ascending, the last one the total. */
typedef struct {
  int num;
  int64_t end_byte[EB_CUT_MAX_SEGMENTS];
} eb_cut;

typedef struct {
  eb_cut cut;
  double predicted_s;
} eb_proposal;

bool eb_cut_equal(const eb_cut *a, const eb_cut *b);

/* A transfer as the planner sees it. ready_s[p] is when partition p was ready. */
typedef struct {
  const eb_cost *cost;
  int num_partitions;
  int64_t partition_bytes;
  const double *ready_s;
} eb_plan_input;

/* Seconds from the last partition's readiness to the arrival of all: segments leave in the order of their readiness,
 * and each keeps the one way they have busy for its overhead and its bytes (EQUATIONS.md section 1 joined with the cost
 * of a message). ready_s[s] and bytes[s] belong to segment s,
 * of which there are EB_CUT_MAX_SEGMENTS at most. */
double eb_plan_predict_s(const eb_cost *cost, int num, const double *ready_s, const int64_t *bytes);
/* The same for a cut. */
double eb_plan_price_s(const eb_plan_input *input, const eb_cut *cut);

/* Can any segments bring a gain, whenever partitions are ready? Where not, nobody needs to look at the clock. True for large
 * transfers, whose costs are not known beforehand. */
bool eb_plan_can_gain(const eb_cost *cost, int64_t total_bytes, int64_t partition_bytes);

/* The least total that can gain in any partitions; 0 where nothing is known. */
int64_t eb_plan_least_bytes(const eb_cost *cost);

/* Into how many segments a transfer is cut of which nothing is known yet but its size, for sizes up to 256 KiB: entry
 * eb_plan_first_place(total_bytes). */
enum { EB_PLAN_FIRST_PLACES = 48 };
int eb_plan_first_place(int64_t total_bytes);
void eb_plan_first_numbers(const eb_cost *cost, unsigned char *numbers);

/* The cuts worth a try, the predicted best first, at most EB_PLAN_MAX_CUTS of at most max_segments each; one segment is among
 * them. Returns how many. */
int eb_plan_propose(const eb_plan_input *input, int max_segments, eb_proposal *proposals);

void eb_plan_sort_s(double *values_s, int num);
/* The median, and of an even number the lower one of the two: noise only adds. Sorts the values. */
double eb_plan_typical_s(double *values_s, int num);

#endif
