/* Proposes segmentations of a transfer from the ready times of its partitions, and predicts their times. Uses no MPI. */
#ifndef EB_PLANNER_H
#define EB_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/segmentation/cost.h"
#include "partitioned/segmentation/segment.h"

enum { EB_CUT_MAX_SEGMENTS = 32, EB_PLANNER_MAX_CUTS = 6 };

/* A segmentation of a transfer: the ends of its segments in bytes, ascending; the last one is the total. And how they travel. */
typedef struct {
  int num;
  eb_path path;
  int64_t end_byte[EB_CUT_MAX_SEGMENTS];
} eb_cut;

typedef struct {
  eb_cut cut;
  double predicted_s;
} eb_proposal;

bool eb_cut_equal(const eb_cut *a, const eb_cut *b);

/* The planner's input for a transfer. ready_s[p] is the time when partition p was ready. */
typedef struct {
  const eb_cost *cost;      /* of messages */
  const eb_cost *ring_cost, *direct_cost; /* of other paths; NULL: there is none */
  int num_partitions;
  int64_t partition_bytes;
  const double *ready_s;
} eb_planner_input;

/* What a message costs the receiver and the rest of the program is not in the sender's overhead, which counts so many times. */
#define EB_PLANNER_CAUTION 1.2

/* Seconds from the last partition's readiness to the arrival of all: segments leave in the order of their readiness,
 * and each occupies the link for its overhead and its bytes (EQUATIONS.md section 1 combined with the cost of a message).
 * ready_s[s] and bytes[s] belong to segment s; there are at most EB_CUT_MAX_SEGMENTS. */
double eb_planner_predict_s(const eb_cost *cost, int num, const double *ready_s, const int64_t *bytes);
/* The same for a segmentation. */
double eb_planner_price_s(const eb_planner_input *input, const eb_cut *cut);

/* Is a transfer so short that its costs are not extrapolated? */
bool eb_planner_is_short(int64_t total_bytes);

/* Can any segmentation make a transfer complete sooner, for any ready times? True for large transfers, whose costs are not known
 * beforehand. */
bool eb_planner_can_gain(const eb_cost *cost, int64_t total_bytes, int64_t partition_bytes);

/* Is a transfer of this size predicted to gain by the other path in one segment? */
bool eb_planner_gains_by_ring(const eb_cost *cost, const eb_cost *ring_cost, int64_t total_bytes);

/* The least total size that can gain from several segments; 0: unknown. */
int64_t eb_planner_least_bytes(const eb_cost *cost);

/* The first number of segments of a transfer of which only the size is known, for sizes up to 256 KiB: entry
 * eb_planner_first_place(total_bytes). */
enum { EB_PLANNER_FIRST_PLACES = 48 };
int eb_planner_first_place(int64_t total_bytes);
void eb_planner_first_numbers(const eb_cost *cost, unsigned char *numbers);

/* The candidates to try, the predicted best first: at most EB_PLANNER_MAX_CUTS, of at most max_segments each; one message is
 * among them, and the best one of each path. Returns their number. */
int eb_planner_propose(const eb_planner_input *input, int max_segments, eb_proposal *proposals);

/* From the first partition's readiness to the last one's. */
double eb_planner_spread_s(const eb_planner_input *input);

/* In how many segments neighbouring partitions may go at most, without cutting any. */
int eb_planner_num_joined(const eb_planner_input *input);
/* So many of them, of equal numbers of partitions as far as that goes. */
void eb_planner_equal(const eb_planner_input *input, int num, eb_path path, eb_proposal *proposal);

void eb_planner_sort_s(double *values_s, int num);
/* The median; of an even number of values the lower of the two: noise only adds. Sorts the values. */
double eb_planner_typical_s(double *values_s, int num);

#endif
