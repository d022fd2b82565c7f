/* What is known of transfers of a kind, and which segmentations are worth a trial for them: what follows from predictions alone. The
 * policy decides among them. Uses no MPI. */
#ifndef EB_CANDIDATES_H
#define EB_CANDIDATES_H

#include <stdbool.h>

#include "partitioned/segmentation/planner.h"

/* What another path must be predicted to gain to be used, or tried. */
#define EB_CLEAR_PATH_GAIN_S 0.1e-6

/* What is known of a kind of transfers. */
typedef struct {
  bool is_inter_node; /* the two sides have clocks that drift apart */
  bool is_small; /* too small to complete sooner in several segments */
  bool is_strict; /* several segments must be quicker in every start */
  bool trusts_predictions; /* what was predicted to be quicker than one message needs less evidence */
  double further_s; /* what each further message costs others, and must gain if one of these two holds */
  double spread_s; /* from the first partition's readiness to the last one's */
  int num_together; /* senders that were under way when a start was observed, this one included */
  bool is_long; /* and messages of its size were measured */
  bool sends_early; /* the first proposal is used at once, as is what was in use before it by messages */
} eb_terms;

/* What is known of transfers of a level, size and readiness; is_small is left to the caller. */
eb_terms eb_terms_of(const eb_planner_input *input, bool is_inter_node);

/* For short transfers whose partitions are ready long before the last one: the receiver may compute with them, which shows in
 * the time of the whole program and hardly in that of one transfer. As many segments as cost little of that time, up to one
 * per partition; by another path than messages, the same by messages is the second proposal. Returns their number: 0 if one
 * segment is all that is cheap. further_s: what a message costs the thread beyond the input's cost: the packing of types
 * with gaps, and the sends of other transfers meanwhile, because they have the same choice: in a burst at least those of
 * num_together transfers, the first of which has seen no others. */
int eb_candidates_send_early(const eb_planner_input *input, int max_segments, double further_s, int num_together,
                             eb_proposal *proposals);

/* Are so many transfers under way that a trial, which is of one, takes the time of all? Their senders are counted whatever they
 * send, because mostly they do the same. */
bool eb_terms_is_burst(int num_together);

/* What the messages of a segmentation beyond one cost the other transfers of a burst if these choose alike; else 0. */
double eb_terms_others_s(const eb_terms *terms, const eb_cut *cut);

/* Where one segment by the ring takes so little time that nothing else can be worth a trial: that one and one message, which is
 * decided sooner than proposals are made. Returns their number, or 0. */
int eb_candidates_decide_plainly(const eb_planner_input *input, eb_proposal *proposals);

/* Of num proposals, those that are worth a trial: all of them, or only the one message, which is left as the first. Times of a
 * few starts differ by chance, so a prediction from known costs that promises nothing is not put to the test. Returns their
 * number. */
int eb_candidates_select(const eb_planner_input *input, int num, eb_proposal *proposals);

/* Is a segmentation about as good for this readiness as for that of the kind that uses it, for which predicted_s was predicted? */
bool eb_candidates_fit(const eb_planner_input *input, const eb_cut *cut, double predicted_s);

#endif
