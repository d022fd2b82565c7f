/* Chooses the segments of a transfer from the times at which its partitions were ready. Knows no MPI. */
#ifndef EB_PLAN_H
#define EB_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/cost.h"
#include "partitioned/segment.h"

/* Starts before a plan whose times it is made of: one may be disturbed, two of three are not. */
enum { EB_PLAN_RECORDS = 3 };

/* Plans are sent at these starts of a request (2, 8, 14, 32, 128, 134, then every 256) and used from the next start on. */
bool eb_plan_is_due(uint64_t start);
/* The place among EB_PLAN_RECORDS that this start's times go to, or -1. They are those of the starts 4, 3 and 2
 * before a plan, so that the receiver's report of them is there in time; of start 1 before the first. */
int eb_plan_record(uint64_t start);
/* Does the receiver report after this start? */
bool eb_plan_is_reported(uint64_t start);
/* The records that a plan made at this start has: 1 or EB_PLAN_RECORDS, the last ones. */
int eb_plan_num_records(uint64_t start);
/* The median of the records of a partition, of which there are 1 or 3. */
double eb_plan_typical_s(const double *records_s, int num);

/* Seconds from the last partition's readiness to the arrival of all: segments leave in the order of their readiness,
 * and each keeps the one way they have busy for its overhead and its bytes (EQUATIONS.md section 1 joined with the cost
 * of a message). ready_s[s] and bytes[s] belong to segment s. */
double eb_plan_predict_s(const eb_cost *cost, int num, const double *ready_s, const int64_t *bytes);

/* Can any segments bring a clear gain, whenever partitions are ready? Where not, nobody needs to look at the clock. */
bool eb_plan_can_gain(const eb_cost *cost, int64_t total_bytes, int64_t partition_bytes);

/* The predicted best groups of contiguous partitions: their ends in bytes, at most max_segments of them, in
 * end_byte[]; returns how many, and their predicted time in *predicted_s. ready_s[p] is when partition p was ready. One segment is kept unless the gain is
 * clear (15 % and 0.3 us): a prediction is not exact, and fewer messages disturb the rest of the program less. */
int eb_plan_choose(const eb_cost *cost, int num_partitions, int64_t partition_bytes, const double *ready_s,
                   int max_segments, int64_t *end_byte, double *predicted_s);

/* The best segments for what was recorded, and what to expect of them. */
typedef struct {
  int num; /* 0: there is no proposal */
  double best_s, one_s, now_s; /* predicted with them, with one, and with the segments in use */
} eb_proposal;

/* What some starts took, in seconds; NAN: not seen. The two ends' clocks may differ, by the same for all starts, so only
 * the difference of two values of after_s means something. */
typedef struct {
  double after_s; /* from the last partition's readiness to the receiver's completion */
  double ready_s; /* from the start to the last partition's readiness */
  double own_s;   /* of that, what our own sends took */
} eb_observation;

/* What was seen of one segment and of the plans. A prediction rests on costs measured in another moment; this is what
 * the transfer itself took. */
typedef struct {
  eb_observation one, many;
  bool is_trying;      /* one segment is in use to be compared with the plan */
  double refused_gain; /* predicted time of the plan that lost over that of one segment; 0: none has lost */
} eb_trial;

void eb_trial_begin(eb_trial *trial);
/* What was seen cannot be compared with what will be seen. */
void eb_trial_forget_times(eb_trial *trial);

typedef enum { EB_KEEP, EB_USE_ONE, EB_USE_BEST } eb_decision;

/* What to use next, while one segment is in use or more. `observed` is of the recorded starts, their medians. */
eb_decision eb_trial_decide(eb_trial *trial, uint64_t start, bool is_one, const eb_observation *observed,
                            const eb_proposal *proposal);

#endif
