/* Chooses segmentations that are worth a trial. */
#include "partitioned/segmentation/candidates.h"

#include <math.h>
#include <string.h>

/* A transfer of so many bytes is long. */
#define MIN_LONG_BYTES (INT64_C(4) * 1024 * 1024)
/* The part of the time from the first partition's readiness to the last one's that further messages may take for the sake of a receiver
 * that uses partitions early. */
#define CHEAP 0.02
/* Where costs are known, the gain over one message that is worth a trial of a few starts. */
#define TRIED_GAIN 0.1
#define TRIED_GAIN_S 0.2e-6
/* One segment by the ring is tried, late, where it is predicted to take at most so many times as long as one message. */
#define RING_TRIED 1.1
/* Where one segment by the ring can be had, further ones, or messages, must be predicted to gain this over it, as a part and in
 * seconds: readiness is noted with a clock reading for each partition, which is no part of other starts. */
#define FURTHER_GAIN 0.1
#define FURTHER_GAIN_S 0.15e-6
#define READING_S 20e-9
/* What is used may take this much longer than what is best for the readiness of a channel that joins. Two numbers do not say which
 * partition is the last one. */
#define FITTING 1.2

/* Between nodes a message takes cores some microseconds, which other requests wait for: the time of its own request does not show
 * it. From this size on its bytes take longer than that at 10 Gbit/s, and more messages may be worth it. */
#define MAX_STRICT_BYTES (INT64_C(16) * 1024)

static bool is_one_message(const eb_proposal *proposal) { return proposal->cut.num == 1 && proposal->cut.path == EB_PATH_MESSAGE; }

static int64_t total_bytes(const eb_planner_input *input) { return input->num_partitions * input->partition_bytes; }

static bool is_long(const eb_planner_input *input) {
  const eb_cost *const cost = input->cost;
  const int64_t bytes = total_bytes(input);
  return bytes >= MIN_LONG_BYTES && cost->num > 0 && cost->protocols[cost->num - 1].min_bytes >= bytes;
}

/* Between nodes the bytes of larger transfers take much longer than messages cost: it is well predicted that several segments gain
 * if partitions become ready one after another, though not how many segments gain most. Where ranks share cores, times vary from
 * start to start by more than this gain: of 8 requests of 48 KiB in four partitions between four nodes on two cores, four kept one
 * message, though one per partition made the step 10 % shorter. Costs of larger transfers are extrapolated. */
eb_terms eb_terms_of(const eb_planner_input *input, bool is_inter_node) {
  const bool is_short = eb_planner_is_short(total_bytes(input));
  const bool is_strict = is_inter_node && total_bytes(input) <= MAX_STRICT_BYTES;
  return (eb_terms){.is_inter_node = is_inter_node,
                    .is_strict = is_strict,
                    .trusts_predictions = is_inter_node && is_short && !is_strict,
                    .further_s = eb_cost_core_s(input->cost, input->partition_bytes),
                    .spread_s = eb_planner_spread_s(input),
                    .is_long = is_long(input)};
}

/* Of fewer transfers that are under way, each one's own time still shows what its messages gain. */
enum { MIN_BURST = 64 };

bool eb_terms_is_burst(int num_together) { return num_together >= MIN_BURST; }

double eb_terms_others_s(const eb_terms *terms, const eb_cut *cut) {
  if (!eb_terms_is_burst(terms->num_together) || cut->path != EB_PATH_MESSAGE) return 0;
  return (cut->num - 1) * terms->further_s * (terms->num_together - 1);
}

int eb_candidates_send_early(const eb_planner_input *input, int max_segments, double further_s, int num_together,
                             eb_proposal *proposals) {
  if (input->cost->num == 0 || !eb_planner_is_short(total_bytes(input))) return 0;
  const bool by_ring = eb_planner_gains_by_ring(input->cost, input->ring_cost, input->partition_bytes);
  const eb_cost *const cost = by_ring ? input->ring_cost : input->cost;
  const double own_s = EB_PLANNER_CAUTION * eb_cost_core_s(cost, input->partition_bytes);
  const double message_s = fmax(own_s + further_s, eb_terms_is_burst(num_together) ? num_together * own_s : 0);
  const double allowed_s = CHEAP * eb_planner_spread_s(input);
  const int most = eb_planner_num_joined(input);
  int num = most < max_segments ? most : max_segments;
  while (num > 1 && (num - 1) * message_s > allowed_s) num /= 2;
  if (num < 2) return 0;
  eb_planner_equal(input, num, by_ring ? EB_PATH_RING : EB_PATH_MESSAGE, &proposals[0]);
  /* To go back to if the ring is slower than it was measured to be. */
  if (by_ring) eb_planner_equal(input, num, EB_PATH_MESSAGE, &proposals[1]);
  return by_ring ? 2 : 1;
}

/* Puts one segment by the ring first where further ones, or messages, are hardly predicted to gain over it; the last but the one
 * message makes room. */
static int prefer_one(const eb_planner_input *input, int num, eb_proposal *proposals) {
  if (!input->ring_cost || proposals[0].cut.num == 1) return num;
  const double gain_s = FURTHER_GAIN_S + READING_S * eb_planner_num_joined(input);
  eb_proposal one;
  eb_planner_equal(input, 1, EB_PATH_RING, &one);
  if (one.predicted_s > (1 + FURTHER_GAIN) * proposals[0].predicted_s + gain_s) return num;
  int place = 0;
  while (place < num && !eb_cut_equal(&proposals[place].cut, &one.cut)) place++;
  if (place == num && num < EB_PLANNER_MAX_CUTS) num++;
  if (place >= num) place = is_one_message(&proposals[num - 1]) ? num - 2 : num - 1;
  memmove(&proposals[1], &proposals[0], (size_t)place * sizeof one);
  proposals[0] = one;
  return num;
}

int eb_candidates_decide_plainly(const eb_planner_input *input, eb_proposal *proposals) {
  if (!input->ring_cost || !eb_planner_gains_by_ring(input->cost, input->ring_cost, total_bytes(input))) return 0;
  eb_planner_equal(input, 1, EB_PATH_RING, &proposals[0]);
  eb_planner_equal(input, 1, EB_PATH_MESSAGE, &proposals[1]);
  return proposals[0].predicted_s <= FURTHER_GAIN_S + READING_S * eb_planner_num_joined(input) ? 2 : 0;
}

int eb_candidates_select(const eb_planner_input *input, int num, eb_proposal *proposals) {
  if (input->cost->num == 0 || num < 2) return num;
  if (!eb_planner_is_short(total_bytes(input))) return prefer_one(input, num, proposals);
  int one = 0;
  while (one < num - 1 && !is_one_message(&proposals[one])) one++;
  const double one_s = proposals[one].predicted_s, gain_s = one_s - proposals[0].predicted_s;
  const double least_s = proposals[0].cut.path != EB_PATH_MESSAGE ? EB_CLEAR_PATH_GAIN_S : TRIED_GAIN_S;
  if (gain_s >= TRIED_GAIN * one_s && gain_s >= least_s) return prefer_one(input, num, proposals);
  proposals[0] = proposals[one];
  if (!input->ring_cost) return 1;
  /* Either path may be measured wrong by some part: the ring is tried in the end. */
  eb_planner_equal(input, 1, EB_PATH_RING, &proposals[1]);
  return proposals[1].predicted_s <= RING_TRIED * one_s ? 2 : 1;
}

bool eb_candidates_fit(const eb_planner_input *input, const eb_cut *cut, double predicted_s) {
  return eb_planner_price_s(input, cut) <= FITTING * predicted_s;
}
