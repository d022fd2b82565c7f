/* A bounded table of kinds, and the results of those that were forgotten or learned by an earlier run. */
#include "partitioned/adaptation/learned.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/process/world.h"
#include "partitioned/segmentation/candidates.h"

/* 2 KiB each. */
enum { MAX_KINDS = 64 };

struct eb_kind {
  eb_learned_result result; /* without what is known only when it is asked for */
  eb_policy policy;
  uint64_t used;  /* when a channel joined it last */
};

static eb_kind *kinds[MAX_KINDS];
static uint64_t num_joined;

static eb_learned_result results[EB_LEARNED_MAX_RESULTS];
static unsigned num_results; /* ever; places are taken in turn */

eb_readiness eb_readiness_of(double *ready_s, int num) {
  eb_planner_sort_s(ready_s, num);
  return (eb_readiness){ready_s[num - 1] - ready_s[0], ready_s[num - 1] - ready_s[num / 2]};
}

static double message_s_of(const eb_learned_result *result) {
  return eb_cost_time_s(result->is_inter_node ? &eb_world.config.inter_node : &eb_world.config.intra_node, result->total_bytes);
}

static bool is_alike(const eb_learned_result *a, const eb_learned_result *b, double message_s) {
  return a->total_bytes == b->total_bytes && a->num_partitions == b->num_partitions && a->is_inter_node == b->is_inter_node &&
         a->paths == b->paths && eb_cost_is_alike(a->seen.first_s, b->seen.first_s, message_s) &&
         eb_cost_is_alike(a->seen.half_s, b->seen.half_s, message_s);
}

/* ---- Results ---- */

static int num_kept(void) { return num_results < EB_LEARNED_MAX_RESULTS ? (int)num_results : EB_LEARNED_MAX_RESULTS; }

static eb_learned_result *find_result(const eb_learned_result *like, double message_s) {
  for (int k = num_kept() - 1; k >= 0; k--)
    if (is_alike(&results[k], like, message_s)) return &results[k];
  return NULL;
}

static void keep_result(const eb_learned_result *result, double message_s) {
  eb_learned_result *place = find_result(result, message_s);
  if (!place) place = &results[num_results++ % EB_LEARNED_MAX_RESULTS];
  *place = *result;
}

static bool is_of_burst(const eb_kind *kind) { return eb_terms_is_burst(kind->policy.terms.num_together); }

/* Fills in what the policy has found; false if it has found nothing yet, and for a burst, whose results say nothing to others. */
static bool read_result(const eb_kind *kind, eb_learned_result *result) {
  *result = kind->result;
  result->cut = *eb_policy_cut(&kind->policy);
  result->won_s = kind->policy.won_s;
  return eb_policy_has_found(&kind->policy) && !is_of_burst(kind);
}

void eb_learned_add(const eb_learned_result *result) {
  eb_lock();
  keep_result(result, message_s_of(result));
  eb_unlock();
}

int eb_learned_list(eb_learned_result *into, int max_results) {
  int num = 0;
  eb_lock();
  for (int k = 0; k < MAX_KINDS && num < max_results; k++)
    if (kinds[k] && read_result(kinds[k], &into[num])) num++;
  const int num_fresh = num;
  for (int k = 0; k < num_kept() && num < max_results; k++) {
    bool is_known = results[k].is_recalled;
    for (int f = 0; f < num_fresh && !is_known; f++) is_known = is_alike(&results[k], &into[f], message_s_of(&into[f]));
    if (!is_known) into[num++] = results[k];
  }
  eb_unlock();
  return num;
}

/* ---- Kinds ---- */

/* Bits: the paths of which the costs are known. */
static unsigned paths_of(const eb_planner_input *input) {
  return 1U << EB_PATH_MESSAGE | (input->ring_cost ? 1U << EB_PATH_RING : 0) | (input->direct_cost ? 1U << EB_PATH_DIRECT : 0);
}

eb_policy *eb_kind_policy(eb_kind *kind) { return &kind->policy; }

/* Is what a kind uses about as good for this channel? */
static bool fits(const eb_kind *kind, const eb_planner_input *input) {
  const eb_proposal *const used = &kind->policy.options[kind->policy.in_use].proposal;
  return eb_candidates_fit(input, &used->cut, used->predicted_s);
}

static eb_kind *find_kind(const eb_learned_result *like, const eb_kind_query *query, double message_s) {
  for (int k = 0; k < MAX_KINDS; k++)
    if (kinds[k] && is_alike(&kinds[k]->result, like, message_s) && fits(kinds[k], query->input) &&
        is_of_burst(kinds[k]) == eb_terms_is_burst(query->num_together))
      return kinds[k];
  return NULL;
}

/* A free place, or that of the kind that has had no channel for the longest time. */
static eb_kind **make_room(void) {
  eb_kind **oldest = NULL;
  for (int k = 0; k < MAX_KINDS; k++) {
    if (!kinds[k]) return &kinds[k];
    const bool is_free = kinds[k]->policy.num_channels == 0;
    if (is_free && (!oldest || kinds[k]->used < (*oldest)->used)) oldest = &kinds[k];
  }
  eb_learned_result result;
  if (!oldest) return NULL;
  if (read_result(*oldest, &result)) keep_result(&result, message_s_of(&result));
  free(*oldest);
  *oldest = NULL;
  return oldest;
}

static void begin_kind(eb_kind *kind, const eb_kind_query *query, double message_s) {
  eb_proposal proposals[EB_PLANNER_MAX_CUTS];
  const eb_planner_input *const input = query->input;
  const int num_early = eb_candidates_send_early(input, query->max_segments, query->further_s, query->num_together, proposals);
  int num = num_early ? num_early : eb_candidates_decide_plainly(input, proposals);
  if (num == 0) num = eb_candidates_select(input, eb_planner_propose(input, query->max_segments, proposals), proposals);
  const eb_proposal in_use = {*query->in_use, eb_planner_price_s(input, query->in_use)};
  const eb_transfer *const transfer = query->transfer;
  eb_terms terms = eb_terms_of(input, eb_transfer_is_inter_node(transfer));
  terms.is_small = transfer->total_bytes < eb_transfer_agreement(transfer)->least_adapted_bytes;
  terms.sends_early = num_early > 0;
  terms.num_together = query->num_together;
  eb_policy_begin(&kind->policy, &terms, num, proposals, &in_use, query->num_starts);
  const eb_learned_result *const known = num_early ? NULL : find_result(&kind->result, message_s);
  if (!known || known->cut.num > query->max_segments || !(paths_of(input) & 1U << known->cut.path)) return;
  if (known->won_s > 0 && known->won_s < eb_terms_others_s(&terms, &known->cut)) return; /* it was found for fewer at a time */
  const eb_proposal recalled = {known->cut, eb_planner_price_s(input, &known->cut)};
  eb_policy_recall(&kind->policy, &recalled, known->won_s);
}

/* Under eb_lock. */
static eb_kind *find_or_begin(const eb_kind_query *query) {
  const eb_transfer *const transfer = query->transfer;
  const eb_planner_input *const input = query->input;
  const size_t num_bytes = (size_t)input->num_partitions * sizeof *input->ready_s;
  const double message_s = eb_cost_time_s(transfer->cost, transfer->total_bytes);
  double *const sorted_s = malloc(num_bytes);
  if (!sorted_s || query->in_use->num == 0) {
    free(sorted_s);
    return NULL;
  }
  memcpy(sorted_s, input->ready_s, num_bytes);
  const eb_learned_result like = {.is_inter_node = eb_transfer_is_inter_node(transfer),
                                  .paths = paths_of(input),
                                  .num_partitions = transfer->num_partitions,
                                  .total_bytes = transfer->total_bytes,
                                  .seen = eb_readiness_of(sorted_s, input->num_partitions)};
  free(sorted_s);
  eb_kind *kind = find_kind(&like, query, message_s);
  eb_kind **const place = kind ? NULL : make_room();
  if (place && (kind = *place = calloc(1, sizeof *kind))) {
    kind->result = like;
    begin_kind(kind, query, message_s);
  }
  return kind;
}

eb_kind *eb_kind_join(const eb_kind_query *query, eb_kind *before, const void *channel) {
  eb_lock();
  eb_kind *const kind = find_or_begin(query);
  if (kind != before) {
    if (before) eb_policy_leave(&before->policy, channel);
    if (kind) kind->policy.num_channels++;
  }
  if (kind) {
    kind->used = ++num_joined;
    eb_policy_meet(&kind->policy, query->num_together);
  }
  eb_unlock();
  return kind;
}

void eb_kind_leave(eb_kind *kind, const void *channel) {
  if (!kind) return;
  eb_lock();
  eb_policy_leave(&kind->policy, channel);
  eb_unlock();
}
