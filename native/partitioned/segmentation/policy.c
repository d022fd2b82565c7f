/* Spends on trials what the starts so far allow, and uses what was quicker twice. */
#include "partitioned/segmentation/policy.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- The constants that decide ---- */

/* The first message. Small transfers gain only where a receiver uses partitions long before the last one is ready: requests that are
 * started a few times are spared. */
enum { FIRST = 2, SMALL_FIRST = 16 };
/* The program may change: the readiness of partitions is looked at again, seldom, because it reads the clock for each of them. */
enum { CHECK = 64, SMALL_CHECK = 512, CHECK_TIMES = 4, MAX_CHECK_STEP = 2048 };

/* Trials may take this part of the time of all starts so far. */
#define BUDGET 0.03
/* Its messages, feedback and clock readings take about this long beyond its starts, which makes trials of short transfers dear. */
#define TRIAL_S 8e-6
/* What a start with an untried segmentation is expected to take beyond the others, at worst: costs are measured on an idle link. */
#define RISK 0.5
/* A predicted gain pays for a trial if the gain in as many starts as have passed is this many times its cost; below this gain nothing
 * is expected of a prediction. */
#define GOOD_MARGIN 3
#define WANTED_GAIN 0.1
/* A prediction is followed before any trial if it promises this much, and partitions are ready one after another over this part of
 * the predicted time: that early messages overlap is certain, and how quick they are is not. */
#define CLEAR_GAIN 0.3
#define CLEAR_SPREAD 0.5
/* So is one for a long transfer whose costs were measured at its size, if it promises this much: Intel MPI takes 4 ms for 16 MiB in one
 * message and 1.6 ms in four, and eight starts passed before a trial was affordable. */
#define CLEAR_LONG_GAIN 0.4
/* So is one of another path, which was measured in the same way, if it promises this and EB_CLEAR_PATH_GAIN_S. It is compared with the one
 * before at once. */
#define CLEAR_PATH_GAIN 0.1
/* Options that are not predicted to gain are tried after so many starts where costs are extrapolated: Intel MPI takes half as long
 * for 16 MiB in pieces of 512 KiB, which costs of short messages do not show. */
enum { CURIOUS = 128 };

/* Starts of a probe with the segmentation in use, the one with the message aside, and then with the challenger: the first of these is
 * not counted, because its messages are new to the MPI, and slower (Open MPI, 128 KiB in two: 16 us instead of 13). A strict one
 * compares more. */
enum { NUM_BASE = 3, NUM_TRIED = 2, NUM_STRICT_BASE = 4, NUM_STRICT_TRIED = 5 };
/* The memory of another path is touched first in its first two starts, of which each may take 100 us. */
enum { NUM_RING_UNCOUNTED = 2, NUM_RING_TRIED = 6 };
/* Counted starts of a path that is used unseen, and then those of the one before, the first of which is not counted. With feedback and
 * clock readings each takes about this much longer, which is seldom paid for by transfers that take less: they are compared when the
 * starts so far allow it, but so many starts late at most, because costs may have been measured wrong. */
enum { NUM_UNSEEN = 4, NUM_FORMER = 4, MAX_UNSEEN = 128 };
#define OBSERVED_S 1e-6
/* Starts that are observed after a change, the first of which is not counted. */
enum { NUM_CONFIRMED = 4 };
/* Feedback on a start is there so many starts later. */
enum { LATER = 2 };
/* A switch is looked at as soon as its first start is known, and taken back if that took this much longer. */
#define GIVEN_UP 1.5
/* What took so many times as long as expected was held up by something else, and shows nothing of its segments: of the first 40 large
 * messages of Intel MPI some take 2 to 10 ms instead of 0.1 ms, whatever is sent. */
#define HELD_UP 10.0

/* A difference in parts of the time, or in seconds, that is none. */
#define UNCLEAR 0.02
#define UNCLEAR_S 30e-9
/* The part of all pairs of starts in which a challenger that is quicker takes less; if it was predicted to be quicker than one message,
 * and predictions are trusted, or it was switched to; and if it has fewer messages, which disturb the program less. */
#define CLEAR_PAIRS 0.85
#define PREDICTED_PAIRS 0.6
#define FEWER_PAIRS 0.5
/* A prediction must promise this much to be trusted next to, or instead of, a trial. */
#define TRUSTED 0.85
/* Clocks of two nodes drift apart by some microseconds a second, which does not matter for this long whatever is sent. */
#define DRIFT 5e-6
#define COMPARABLE_S 0.1

/* What has lost is tried again after so many times the starts so far, at least after these: the first 20 to 40 messages of 64 KiB
 * and more take Intel MPI 20 times as long in shared memory. What took more than twice as long waits longer. */
enum { RETRY_TIMES = 4, FIRST_RETRY = 64, SLOW_RETRY_TIMES = 16 };
#define SLOW 2.0
/* Of times that were taken before FIRST_RETRY starts no more than this is expected again, or counted as the cost of a trial. */
#define EARLY_RISK 0.5

/* A channel that has a trial may not be started again, though it is not freed. So many times the starts that its trial would take if
 * all channels of the kind were started in turn, and another channel may try. */
enum { ABANDONED_TIMES = 16 };
/* What was tried unseen is tried again after so many times the starts so far: feedback comes late where a sender is far ahead. */
enum { UNSEEN_RETRY_TIMES = 2 };

/* Channels that wait for what another one finds: so many starts at least between two messages. */
enum { WAIT = 8 };

/* ---- Predictions ---- */

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static double larger_s(double a, double b) { return a > b ? a : b; }

uint64_t eb_policy_first_message(bool is_small) { return is_small ? SMALL_FIRST : FIRST; }

uint64_t eb_policy_next_check(uint64_t start, bool is_small) {
  uint64_t at = is_small ? SMALL_CHECK : CHECK;
  while (at <= start + EB_POLICY_NUM_READY) at = smaller(at * CHECK_TIMES, at + MAX_CHECK_STEP);
  return at;
}

static double others_s(const eb_policy *policy, int option) {
  return eb_terms_others_s(&policy->terms, &policy->options[option].proposal.cut);
}

static double predicted_s(const eb_policy *policy, int option) { return policy->options[option].proposal.predicted_s; }

/* With what it costs the others: the planner knows one transfer. */
static double shared_s(const eb_policy *policy, int option) { return predicted_s(policy, option) + others_s(policy, option); }

static int num_segments(const eb_policy *policy, int option) { return policy->options[option].proposal.cut.num; }

/* What an option is predicted to gain over the segmentation in use, as a part of what that takes. */
static double predicted_gain(const eb_policy *policy, int option) {
  const double used_s = shared_s(policy, policy->in_use);
  return used_s > 0 ? 1 - shared_s(policy, option) / used_s : 0;
}

static bool is_predicted(const eb_policy *policy, int option) {
  return policy->terms.trusts_predictions && shared_s(policy, option) < TRUSTED * shared_s(policy, policy->in_use);
}

static int find(const eb_policy *policy, const eb_cut *cut) {
  for (int c = 0; c < policy->num; c++)
    if (eb_cut_equal(&policy->options[c].proposal.cut, cut)) return c;
  return -1;
}

/* The place of a cut, which replaces the last option if there is no more room. */
static int add(eb_policy *policy, const eb_proposal *proposal) {
  const int known = find(policy, &proposal->cut);
  if (known >= 0) return known;
  const int place = policy->num < EB_POLICY_MAX_OPTIONS ? policy->num++ : EB_POLICY_MAX_OPTIONS - 1;
  policy->options[place] = (eb_option){.proposal = *proposal};
  return place;
}

/* Of fewer messages, what takes least where all transfers of a burst do the same. A trial, which is of one, cannot show that. Another
 * path than that in use is not known to have room for all. */
static int best_for_all(const eb_policy *policy) {
  int best = policy->in_use;
  for (int c = 0; c < policy->num; c++)
    if (policy->options[c].proposal.cut.path == policy->options[best].proposal.cut.path &&
        num_segments(policy, c) < num_segments(policy, best) && shared_s(policy, c) < shared_s(policy, best))
      best = c;
  return best;
}

void eb_policy_begin(eb_policy *policy, const eb_terms *terms, int num, const eb_proposal *proposals, const eb_proposal *in_use,
                     uint64_t num_starts) {
  memset(policy, 0, sizeof *policy);
  policy->terms = *terms;
  policy->num_starts = num_starts;
  for (int c = 0; c < num; c++) (void)add(policy, &proposals[c]);
  /* A lone proposal is not put to the test. */
  policy->in_use = num == 1 ? 0 : terms->sends_early ? 1 : add(policy, in_use);
  if (eb_terms_is_burst(terms->num_together) && !terms->sends_early) policy->in_use = best_for_all(policy);
  for (int c = 0; c < policy->num; c++)
    if (predicted_gain(policy, c) < WANTED_GAIN) policy->options[c].retry_at = larger(CURIOUS, num_starts);
}

void eb_policy_recall(eb_policy *policy, const eb_proposal *result, double won_s) {
  policy->in_use = add(policy, result);
  policy->won_s = won_s;
  policy->is_recalled = true;
  for (int c = 0; c < policy->num; c++) policy->options[c].retry_at = larger(FIRST_RETRY, RETRY_TIMES * policy->num_starts);
}

void eb_policy_meet(eb_policy *policy, int num_together) {
  const int former = policy->terms.num_together / 2; /* one that was observed alone says little */
  policy->terms.num_together = num_together > former ? num_together : former;
}

/* ---- Which trial comes next ---- */

static int num_base(const eb_policy *policy) { return policy->terms.is_strict ? NUM_STRICT_BASE : NUM_BASE; }

static eb_path path_of(const eb_policy *policy, int option) { return policy->options[option].proposal.cut.path; }

static bool changes_path(const eb_policy *policy, int option) { return path_of(policy, option) != path_of(policy, policy->in_use); }

const eb_cut *eb_policy_message_cut(const eb_policy *policy) {
  const int option = policy->is_unseen ? policy->former : policy->in_use;
  const bool is_known = path_of(policy, option) == EB_PATH_MESSAGE && !policy->terms.sends_early; /* which may cost too much */
  return is_known ? &policy->options[option].proposal.cut : NULL;
}

/* Does a trial of it begin with starts that touch memory first? */
static bool touches_memory(const eb_policy *policy, int option) {
  return changes_path(policy, option) && path_of(policy, option) != EB_PATH_MESSAGE;
}

static int num_tried(const eb_policy *policy, int option) {
  if (touches_memory(policy, option)) return NUM_RING_TRIED;
  return policy->terms.is_strict ? NUM_STRICT_TRIED : NUM_TRIED;
}

/* Once it may be by something else; what takes as long a second time takes as long by itself. */
static bool is_held_up(const eb_option *option) { return option->ratio >= HELD_UP && option->num_held_up < 2; }

static void set_ratio(eb_option *option, double ratio) {
  option->ratio = fmax(ratio, UNCLEAR);
  if (ratio >= HELD_UP && option->num_held_up < 2) option->num_held_up++;
}

/* What a trial is expected to cost, in starts. */
static double cost(const eb_policy *policy, int place) {
  const eb_option *const option = &policy->options[place];
  double risk = option->ratio > 0 ? option->ratio - 1 : RISK;
  const bool is_slow = option->ratio >= SLOW && !is_held_up(option);
  if (policy->num_starts < RETRY_TIMES * FIRST_RETRY && risk > EARLY_RISK && !is_slow) risk = EARLY_RISK;
  if (risk < UNCLEAR) risk = UNCLEAR;
  return num_tried(policy, place) * risk + TRIAL_S / larger_s(predicted_s(policy, policy->in_use), UNCLEAR_S);
}

/* How many starts the kind must have had before an option is tried. */
static uint64_t starts_needed(const eb_policy *policy, int option) {
  const eb_option *const of = &policy->options[option];
  const double price = cost(policy, option), gain = predicted_gain(policy, option);
  double needed = (policy->excess + price) / BUDGET;
  if (of->ratio == 0 && gain >= WANTED_GAIN) {
    const double by_gain = fmax(GOOD_MARGIN * price / gain, policy->excess / BUDGET);
    if (by_gain < needed) needed = by_gain;
  }
  return larger(of->retry_at, (uint64_t)ceil(needed));
}

/* A trial is of one transfer: what its messages cost those that are under way with it shows only when they do the same. Where the
 * others would lose more than all that this one takes, nothing that a trial shows is reason enough. */
static bool is_hopeless(const eb_policy *policy, int option) {
  return others_s(policy, option) - others_s(policy, policy->in_use) > predicted_s(policy, policy->in_use);
}

/* The option that is tried next: the first to be affordable, and of those that are now the predicted best; -1: none. */
static int next_option(const eb_policy *policy, uint64_t *needed) {
  int next = -1;
  for (int c = 0; c < policy->num; c++) {
    if (c == policy->in_use || is_hopeless(policy, c)) continue;
    const uint64_t starts = larger(starts_needed(policy, c), policy->num_starts);
    if (next >= 0 && starts >= *needed) continue;
    next = c;
    *needed = starts;
  }
  return next;
}

/* Is the first option so clearly better that it is used at once? What early messages overlap is certain, and so is what the two paths
 * were measured to take. */
static bool is_clear(const eb_policy *policy) {
  const double used_s = predicted_s(policy, policy->in_use), gain = predicted_gain(policy, 0);
  if (policy->terms.is_strict || policy->is_recalled || policy->in_use == 0 || policy->options[0].ratio > 0 ||
      policy->num_starts == 0)
    return false;
  /* What is in the ring goes back to messages by a trial only. */
  if (changes_path(policy, 0) && path_of(policy, 0) == EB_PATH_MESSAGE) return false;
  if (gain >= CLEAR_GAIN && policy->terms.spread_s >= CLEAR_SPREAD * used_s) return true;
  if (gain >= CLEAR_LONG_GAIN && policy->terms.is_long && !changes_path(policy, 0)) return true;
  return changes_path(policy, 0) &&
         (policy->terms.sends_early || (gain >= CLEAR_PATH_GAIN && gain * used_s >= EB_CLEAR_PATH_GAIN_S));
}

/* ---- A trial ---- */

static void begin_window(eb_policy *policy, eb_policy_stage stage, uint64_t from, uint64_t trial_from, uint64_t end) {
  policy->stage = stage;
  policy->from = from;
  policy->trial_from = trial_from;
  policy->end = end;
  policy->owned_since = policy->num_starts;
  policy->has_looked = false;
  memset(policy->is_known, 0, sizeof policy->is_known);
}

static void begin_trial(eb_policy *policy, const void *channel, uint64_t start, int option, bool switches) {
  policy->owner = channel;
  policy->challenger = option;
  policy->base.num = 0;
  if (switches) {
    begin_window(policy, EB_POLICY_SWITCH, start, start + 1, start + 1 + NUM_CONFIRMED);
  } else {
    const uint64_t trial_from = start + 1 + (uint64_t)num_base(policy);
    begin_window(policy, EB_POLICY_PROBE, start + 1, trial_from, trial_from + (uint64_t)num_tried(policy, option));
  }
}

/* The first option, of another path, is used from now on. Its first starts are no measure, and neither is this one, which carries a
 * message: the path before it is the one that is put to the test, a few starts later. */
static void use_unseen(eb_policy *policy) {
  policy->former = policy->in_use;
  policy->in_use = 0;
  policy->is_unseen = true;
  const double price_s = 2 * TRIAL_S + (NUM_RING_UNCOUNTED + NUM_UNSEEN + NUM_FORMER) * OBSERVED_S;
  const double needed = price_s / larger_s(predicted_s(policy, 0), UNCLEAR_S) / BUDGET;
  policy->compare_at = needed < MAX_UNSEEN ? (uint64_t)needed : MAX_UNSEEN;
  policy->is_awaited = policy->compare_at <= policy->num_starts;
}

static void begin_comparison(eb_policy *policy, const void *channel, uint64_t start) {
  const uint64_t from = start + 1 + NUM_RING_UNCOUNTED, trial_from = from + NUM_UNSEEN;
  policy->owner = channel;
  policy->challenger = policy->former;
  policy->base.num = 0;
  begin_window(policy, EB_POLICY_PROBE, from, trial_from, trial_from + NUM_FORMER);
}

static void end_trial(eb_policy *policy) {
  policy->stage = EB_POLICY_IDLE;
  policy->owner = NULL;
}

static void set_aside(eb_policy *policy, int option, uint64_t times) {
  policy->options[option].retry_at = larger(FIRST_RETRY, times * policy->num_starts);
}

static void lose(eb_policy *policy) {
  const eb_option *const option = &policy->options[policy->challenger];
  set_aside(policy, policy->challenger, option->ratio > SLOW && !is_held_up(option) ? SLOW_RETRY_TIMES : RETRY_TIMES);
  end_trial(policy);
}

static void win(eb_policy *policy, double won_s) {
  const int before = policy->in_use, now = policy->challenger;
  const double ratio = policy->options[now].ratio;
  /* Ratios are those to what is used. */
  for (int c = 0; c < policy->num && ratio > 0; c++) policy->options[c].ratio /= ratio;
  policy->options[before].ratio = ratio > 0 ? 1 / ratio : 0;
  policy->in_use = now;
  policy->options[now].ratio = 0;
  /* What was predicted to gain over the one before need not gain over this one. */
  for (int c = 0; c < policy->num; c++)
    if (policy->options[c].ratio == 0 && predicted_gain(policy, c) < WANTED_GAIN)
      policy->options[c].retry_at = larger(policy->options[c].retry_at, CURIOUS);
  policy->won_s = fmax(0, won_s); /* fewer segments are used also where they take a little longer */
  set_aside(policy, before, RETRY_TIMES);
  end_trial(policy);
}

void eb_policy_observe(eb_policy *policy, const void *channel, uint64_t start, const eb_observation *observed) {
  if (policy->owner != channel || start < policy->from || start >= policy->end) return;
  policy->observed[start - policy->from] = *observed;
  policy->is_known[start - policy->from] = true;
}

/* When the last partition is ready in the known starts from `from` to before `end`; DBL_MAX: none. */
static double typical_ready_s(const eb_policy *policy, uint64_t from, uint64_t end) {
  double ready_s[EB_POLICY_MAX_OBSERVED];
  int num = 0;
  for (uint64_t start = from; start < end; start++)
    if (policy->is_known[start - policy->from]) ready_s[num++] = policy->observed[start - policy->from].ready_s;
  return num ? eb_planner_typical_s(ready_s, num) : DBL_MAX;
}

/* Within a node, where clocks have no offset, leaves out starts that were held up, whichever segmentation they had: on a core that another
 * process uses, too, they take 4, 8 or 12 ms longer. The least stays, so that a segmentation is slow of which all starts are; a time that
 * is not positive was disturbed itself. Between nodes times have a part of the clocks, and more noise. */
static void drop_held_up(const eb_policy *policy, eb_times *of) {
  double least_s = DBL_MAX;
  int num = 0;
  if (policy->terms.is_inter_node) return;
  for (int k = 0; k < of->num; k++)
    if (of->taken_s[k] > 0) least_s = fmin(least_s, of->taken_s[k]);
  if (least_s == DBL_MAX) return;
  const double most_s = least_s + (HELD_UP - 1) * larger_s(least_s, UNCLEAR_S);
  for (int k = 0; k < of->num; k++)
    if (of->taken_s[k] <= most_s) of->taken_s[num++] = of->taken_s[k];
  of->num = num;
}

/* What each known start took that was not held up. Sends may have delayed the program before the last partition was ready, at most for as
 * long as they took; where the program was waiting anyway, they have not. */
static eb_times times_of(const eb_policy *policy, uint64_t from, uint64_t end) {
  eb_times made = {0, {0}};
  for (uint64_t start = from; start < end; start++) {
    const eb_observation *const of = &policy->observed[start - policy->from];
    if (!policy->is_known[start - policy->from]) continue;
    const double later_s = of->ready_s - policy->unhindered_s;
    made.taken_s[made.num++] = of->after_s + (later_s < 0 ? 0 : later_s < of->own_s ? later_s : of->own_s);
  }
  drop_held_up(policy, &made);
  return made;
}

/* What the segmentation in use took, next to starts of the challenger. Before a switch that is one start, with its message: there
 * MPI_Start takes longer (Intel MPI, 1 MiB: 25 us), so that a program whose partitions are ready at given times seems to be ready
 * sooner by that. The challenger's sends, for which the program has time, would count as a delay. */
static void set_base(eb_policy *policy, uint64_t tried_from, uint64_t tried_end) {
  const double tried_ready_s = typical_ready_s(policy, tried_from, tried_end);
  const double base_ready_s = typical_ready_s(policy, policy->from, policy->trial_from);
  policy->unhindered_s = policy->stage == EB_POLICY_SWITCH ? tried_ready_s : fmin(base_ready_s, tried_ready_s);
  policy->base = times_of(policy, policy->from, policy->trial_from);
}

static double typical_s(const eb_times *of) {
  eb_times sorted = *of;
  return eb_planner_typical_s(sorted.taken_s, sorted.num);
}

/* What the segmentation in use takes, to compare differences with: between nodes a time contains that of the two clocks. */
static double scale_s(const eb_policy *policy) {
  const double seen_s = typical_s(&policy->base), expected_s = predicted_s(policy, policy->in_use);
  const double scale = policy->terms.is_inter_node ? expected_s : seen_s;
  return scale > UNCLEAR_S ? scale : UNCLEAR_S;
}

static double part_of_pairs(const eb_times *challenger, const eb_times *base) {
  int num_quicker = 0;
  for (int k = 0; k < challenger->num; k++)
    for (int j = 0; j < base->num; j++) num_quicker += challenger->taken_s[k] < base->taken_s[j];
  return (double)num_quicker / (challenger->num * base->num);
}

/* Starts of the segmentation in use differ by so much. */
static double noise_s(const eb_times *base) {
  double least_s = DBL_MAX, most_s = -DBL_MAX;
  for (int k = 0; k < base->num; k++) {
    least_s = fmin(least_s, base->taken_s[k]);
    most_s = fmax(most_s, base->taken_s[k]);
  }
  return base->num ? (most_s - least_s) / 2 : 0;
}

static bool is_quicker(const eb_policy *policy, const eb_times *tried) {
  const int further = num_segments(policy, policy->challenger) - num_segments(policy, policy->in_use);
  const double gain_s = typical_s(&policy->base) - typical_s(tried), unclear_s = UNCLEAR * scale_s(policy) + UNCLEAR_S;
  const bool predicted = is_predicted(policy, policy->challenger);
  if (gain_s <= others_s(policy, policy->challenger) - others_s(policy, policy->in_use) && further > 0) return false;
  double pairs = policy->stage == EB_POLICY_SWITCH || predicted ? PREDICTED_PAIRS : CLEAR_PAIRS;
  /* Either path was measured: what is quicker here is used, and numbers of segments do not compare. */
  if (changes_path(policy, policy->challenger)) return part_of_pairs(tried, &policy->base) >= PREDICTED_PAIRS && gain_s > unclear_s;
  if (policy->terms.is_strict) pairs = further > 0 ? 1 : FEWER_PAIRS;
  else if (further < 0) pairs = FEWER_PAIRS;
  if (part_of_pairs(tried, &policy->base) < pairs) return false;
  if (further < 0) return gain_s > -unclear_s;
  if ((policy->terms.is_strict || predicted) && gain_s <= further * policy->terms.further_s) return false;
  return gain_s > (predicted || policy->stage == EB_POLICY_SWITCH ? unclear_s : fmax(unclear_s, noise_s(&policy->base)));
}

/* Adds what the known starts of a trial took beyond those before it; the others are taken for equal to them. One that was held up, or
 * one among the first messages, would forbid all trials for thousands of starts. */
static void account(eb_policy *policy, uint64_t before) {
  const eb_times tried = times_of(policy, policy->trial_from, policy->end);
  const double base_s = typical_s(&policy->base);
  double most = policy->num_starts < FIRST_RETRY ? EARLY_RISK : HELD_UP - 1;
  if (policy->options[policy->challenger].num_held_up > 1) most = DBL_MAX;
  double excess = 0;
  for (int k = 0; k < tried.num; k++) excess += fmin(most, fmax(0, tried.taken_s[k] - base_s) / scale_s(policy));
  if (tried.num) policy->excess += excess * (double)larger(before - policy->trial_from, (uint64_t)tried.num) / tried.num;
  policy->excess += TRIAL_S / scale_s(policy);
}

/* Can times be compared that were taken this long apart? The longer the transfer takes, the less it matters. */
static bool is_comparable(const eb_policy *policy, double age_s) {
  return !policy->terms.is_inter_node || age_s <= COMPARABLE_S || DRIFT * age_s <= UNCLEAR * predicted_s(policy, policy->in_use);
}

/* Looks at what the trial's starts took. Its first start is not counted, nor is the second that touches memory. */
static void judge(eb_policy *policy, uint64_t start, double age_s) {
  const bool has_base = policy->stage != EB_POLICY_CONFIRM;
  const bool is_new = policy->stage == EB_POLICY_PROBE && touches_memory(policy, policy->challenger);
  const uint64_t counted_from = policy->trial_from + (is_new ? NUM_RING_UNCOUNTED : 1);
  const bool was_unseen = policy->is_unseen;
  policy->is_unseen = false;
  if (has_base) set_base(policy, counted_from, policy->end);
  const eb_times tried = times_of(policy, counted_from, policy->end);
  if (policy->base.num == 0 || tried.num == 0 || !is_comparable(policy, age_s)) {
    /* Nothing is known; what was predicted clearly, or is trusted, is used all the same. */
    if (policy->stage == EB_POLICY_SWITCH || is_predicted(policy, policy->challenger)) {
      win(policy, 0);
    } else {
      set_aside(policy, policy->challenger, UNSEEN_RETRY_TIMES);
      end_trial(policy);
    }
    return;
  }
  const double gain_s = typical_s(&policy->base) - typical_s(&tried);
  const double ratio = 1 - gain_s / scale_s(policy);
  set_ratio(&policy->options[policy->challenger], ratio);
  policy->has_found = true;
  account(policy, policy->stage == EB_POLICY_PROBE ? policy->end : start + 1);
  if (was_unseen) policy->won_s = fmax(0, -gain_s);
  if (!is_quicker(policy, &tried)) lose(policy);
  else if (policy->stage == EB_POLICY_PROBE)
    begin_window(policy, EB_POLICY_CONFIRM, start + 1, start + 1, start + 1 + NUM_CONFIRMED);
  else win(policy, gain_s);
}

/* Looks at the first start of a switch, which may be slow by itself, but not by so much; those after it decide if it was held up. */
static void look(eb_policy *policy, uint64_t start) {
  policy->has_looked = true;
  set_base(policy, policy->trial_from, policy->trial_from + 1);
  const eb_times tried = times_of(policy, policy->trial_from, policy->trial_from + 1);
  if (policy->base.num == 0 || tried.num == 0) return;
  const double later_s = tried.taken_s[0] - policy->base.taken_s[0];
  const bool may_be_held_up = later_s >= (HELD_UP - 1) * scale_s(policy) && policy->options[policy->challenger].num_held_up == 0;
  if (later_s <= (GIVEN_UP - 1) * scale_s(policy) || may_be_held_up) return;
  set_ratio(&policy->options[policy->challenger], 1 + later_s / scale_s(policy));
  account(policy, start + 1);
  lose(policy);
}

static uint64_t due_of_trial(const eb_policy *policy) {
  if (policy->stage == EB_POLICY_SWITCH && !policy->has_looked) return policy->trial_from + LATER;
  return policy->end - 1 + LATER;
}

static bool is_abandoned(const eb_policy *policy) {
  const uint64_t num_channels = policy->num_channels > 1 ? (uint64_t)policy->num_channels : 1;
  return policy->num_starts - policy->owned_since > ABANDONED_TIMES * (policy->end - policy->from) * num_channels;
}

/* The message after this one, in which no trial of this channel is in progress. */
static uint64_t next_message(const eb_policy *policy, uint64_t start, bool is_current, bool *is_check) {
  const uint64_t check = eb_policy_next_check(start, policy->terms.is_small);
  uint64_t due = check, needed = 0;
  if (policy->owner) due = start + larger(WAIT, start);
  else if (policy->is_unseen || next_option(policy, &needed) >= 0) {
    if (policy->is_unseen) needed = larger(policy->compare_at, policy->num_starts);
    const uint64_t left = (needed - policy->num_starts) / larger(1, (uint64_t)policy->num_channels);
    /* The first start with other segments is no measure. */
    due = start + larger(left, policy->num_channels > 1 ? larger(WAIT, start / 2) : is_current ? 1 : 2);
  }
  *is_check = due >= check;
  return *is_check ? check : due;
}

void eb_policy_decide(eb_policy *policy, const void *channel, uint64_t start, uint64_t num_new, bool is_current, double age_s,
                      eb_plan *plan) {
  policy->num_starts += num_new;
  if (policy->owner == channel) {
    if (policy->stage == EB_POLICY_SWITCH && !policy->has_looked) look(policy, start);
    else judge(policy, start, age_s);
  }
  if (policy->owner && policy->owner != channel && is_abandoned(policy)) end_trial(policy);
  uint64_t needed;
  if (!policy->owner && is_clear(policy) && changes_path(policy, 0)) use_unseen(policy);
  if (!policy->owner && policy->is_unseen) {
    if (policy->num_starts >= policy->compare_at) begin_comparison(policy, channel, start);
  } else if (!policy->owner && is_current) {
    const int next = next_option(policy, &needed);
    if (is_clear(policy)) begin_trial(policy, channel, start, 0, true);
    else if (next >= 0 && needed <= policy->num_starts) begin_trial(policy, channel, start, next, false);
  }
  const bool is_owner = policy->owner == channel;
  const eb_cut *const challenger = is_owner ? &policy->options[policy->challenger].proposal.cut : NULL;
  memset(plan, 0, sizeof *plan);
  plan->cut = is_owner && policy->stage != EB_POLICY_PROBE ? challenger : eb_policy_cut(policy);
  if (!is_owner) {
    if (policy->is_unseen && policy->is_awaited) plan->cut = &policy->options[policy->former].proposal.cut;
    plan->next_due = next_message(policy, start, is_current, &plan->is_check);
    return;
  }
  if (policy->stage == EB_POLICY_PROBE) {
    plan->trial = challenger;
    plan->trial_from = policy->trial_from;
    plan->trial_end = policy->end;
  }
  plan->feedback_from = larger(policy->from, start);
  plan->feedback_end = policy->end;
  plan->next_due = due_of_trial(policy);
}

void eb_policy_leave(eb_policy *policy, const void *channel) {
  policy->num_channels--;
  if (policy->owner != channel) return;
  /* What is unseen is compared by the next channel. */
  if (policy->stage != EB_POLICY_SWITCH && !policy->is_unseen) set_aside(policy, policy->challenger, RETRY_TIMES);
  end_trial(policy);
}
