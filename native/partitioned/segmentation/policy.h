/* Decides which segmentation transfers of a kind use, which other one is tried in which starts, and when the two sides exchange
 * messages about it. Uses no MPI, no clock and no lock: what it decides follows from what it was told.
 *
 * Trials are an investment. A trial takes a few starts, after which the transfers go back to the segmentation in use. Time is
 * counted in starts: a trial whose starts took twice as long as those before it has cost as many starts as it had. */
#ifndef EB_POLICY_H
#define EB_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/segmentation/candidates.h"

enum {
  EB_POLICY_MAX_OPTIONS = EB_PLANNER_MAX_CUTS + 1, /* the proposals, and the segmentation in use */
  EB_POLICY_MAX_OBSERVED = 10,                     /* starts whose times decide on a trial */
  EB_POLICY_NUM_READY = 2                          /* starts before a check in which readiness is noted for each partition */
};

/* The times of a start, in seconds. Between nodes the clocks of the two sides may have a constant offset, so only differences of
 * after_s are meaningful there. */
typedef struct {
  double after_s; /* from the last partition's readiness to the receiver's completion */
  double ready_s; /* from the start to the last partition's readiness */
  double own_s;   /* of that, the time in the library's sends */
} eb_observation;

typedef struct {
  eb_proposal proposal;
  double ratio;      /* what it took over what was used instead, when it was tried last; 0: never */
  int num_held_up;   /* trials in which it took so much longer that something else may have held it up */
  uint64_t retry_at; /* starts of the kind before which it is not tried */
} eb_option;

typedef enum {
  EB_POLICY_IDLE,    /* no trial is in progress */
  EB_POLICY_PROBE,   /* a few starts with the challenger, after some with the segmentation in use */
  EB_POLICY_CONFIRM, /* it was quicker, and is used until a second look */
  EB_POLICY_SWITCH   /* the same without a probe, because the prediction is clear */
} eb_policy_stage;

typedef struct {
  int num;
  double taken_s[EB_POLICY_MAX_OBSERVED];
} eb_times;

typedef struct {
  eb_terms terms;
  int num, in_use;
  eb_option options[EB_POLICY_MAX_OPTIONS]; /* the predicted best first, then what was in use */
  double won_s;        /* a start, by the segmentation in use over the one before it */
  uint64_t num_starts; /* of all channels of the kind */
  double excess;       /* what trials took beyond the segmentation in use, in its starts */
  int num_channels;    /* that share it */
  bool has_found;      /* a trial has been decided by what was seen */
  bool is_unseen;      /* the segmentation in use takes another path than the one before it, and no trial has compared them */
  int former;          /* that one */
  bool is_awaited;     /* other channels use it until they have been compared */
  uint64_t compare_at; /* starts of the kind from which they are compared */
  bool is_recalled;    /* an earlier trial or run has found the segmentation in use: predictions do not replace it */
  /* The trial in progress. */
  eb_policy_stage stage;
  const void *owner;    /* the channel that has it */
  uint64_t owned_since; /* starts of the kind when its starts were planned */
  int challenger;
  uint64_t from, trial_from, end; /* starts of the owner: the first one observed, the first one of the trial, behind the last one */
  bool has_looked; /* a switch was looked at once */
  eb_times base; /* what the segmentation in use took before the trial */
  double unhindered_s; /* when the last partition is ready where nothing holds the program up */
  eb_observation observed[EB_POLICY_MAX_OBSERVED]; /* of start s at s - from */
  bool is_known[EB_POLICY_MAX_OBSERVED];
} eb_policy;

/* What a segmentation message says. */
typedef struct {
  const eb_cut *cut; /* used from the next start on, */
  const eb_cut *trial; /* but for this one (NULL: none) */
  uint64_t trial_from, trial_end; /* from start trial_from to the one before trial_end */
  uint64_t feedback_from, feedback_end; /* starts with feedback, from this one on */
  uint64_t next_due; /* the start of the next message */
  bool is_check; /* readiness is noted before that one */
} eb_plan;

/* The start of the first message: known to both sides. */
uint64_t eb_policy_first_message(bool is_small);
/* The start in which readiness is looked at again, after one that has a message. */
uint64_t eb_policy_next_check(uint64_t start, bool is_small);

/* A kind, of which the proposals of the planner are known. in_use: the segmentation in use, if it has at most
 * EB_CUT_MAX_SEGMENTS segments, with its predicted time. num_starts: those that the channel has had. */
void eb_policy_begin(eb_policy *policy, const eb_terms *terms, int num, const eb_proposal *proposals, const eb_proposal *in_use,
                     uint64_t num_starts);
/* The segmentation that an earlier trial or run has found, with its predicted time, is used from now on. */
void eb_policy_recall(eb_policy *policy, const eb_proposal *result, double won_s);

/* A channel has joined that was under way together with others. */
void eb_policy_meet(eb_policy *policy, int num_together);

/* Adds the times of a start of the channel that has the trial; ignored if they decide nothing. */
void eb_policy_observe(eb_policy *policy, const void *channel, uint64_t start, const eb_observation *observed);

/* What the message in a start of a channel says. num_new: its starts since its last message. is_current: it uses the segmentation
 * in use already. age_s: since the first start of its trial. The cuts belong to the policy. */
void eb_policy_decide(eb_policy *policy, const void *channel, uint64_t start, uint64_t num_new, bool is_current, double age_s,
                      eb_plan *plan);

/* A channel ends, or its transfers have become another kind. */
void eb_policy_leave(eb_policy *policy, const void *channel);

/* Is the segmentation in use the result of a trial of this run? */
static inline bool eb_policy_has_found(const eb_policy *policy) { return policy->has_found; }

static inline const eb_cut *eb_policy_cut(const eb_policy *policy) { return &policy->options[policy->in_use].proposal.cut; }
/* The same for a channel that has no memory for another path; NULL: what it uses stays. */
const eb_cut *eb_policy_message_cut(const eb_policy *policy);

#endif
