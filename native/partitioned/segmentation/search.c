/* Tries the candidates in turns of three starts, and leaves out what is clearly slower than the best so far. */
#include "partitioned/segmentation/search.h"

#include <float.h>
#include <string.h>

/* The first start of a turn is not counted: its messages are new to the MPI, and slower (Open MPI, 128 KiB in two: 16 us
 * instead of 13). */
enum { TURN = 3, MAX_TURNS = 2, MAX_TRIES = 36, LATER = 2 };
/* A candidate gets no further turn if it takes longer than the best by this multiple of the best one's predicted time, */
#define GIVEN_UP 0.4
/* and no further starts of its turn by this one. */
#define GIVEN_UP_AT_ONCE 3
/* A difference in parts of the predicted time, or in seconds, that is none. */
#define UNCLEAR 0.02
#define UNCLEAR_S 30e-9
/* The part of all pairs of starts in which a candidate that is quicker takes less. */
#define CLEAR_PAIRS 0.85
/* The same if it was predicted to be quicker, and predictions are trusted. */
#define PREDICTED_PAIRS 0.6
/* A prediction must promise this much to be followed without a trial, or to be trusted next to one. */
#define TRUSTED 0.85
/* Clocks of two nodes drift apart by some microseconds a second, which does not matter for this long whatever is sent. */
#define DRIFT 5e-6
#define COMPARABLE_S 0.1

void eb_search_begin(eb_search *search, int num, const eb_proposal *proposals) {
  memset(search, 0, sizeof *search);
  memset(search->tried, -1, sizeof search->tried);
  search->num = num;
  for (int c = 0; c < num; c++) search->candidates[c].proposal = proposals[c];
  search->turn = -1;
}

void eb_search_observe(eb_search *search, uint64_t start, const eb_observation *observed) {
  const int tried = search->tried[start % sizeof search->tried];
  if (tried < 0) return;
  eb_candidate *const candidate = &search->candidates[tried];
  search->tried[start % sizeof search->tried] = -1;
  if (candidate->num_observed < EB_SEARCH_MAX_OBSERVED) candidate->observed[candidate->num_observed++] = *observed;
}

/* When the last partition is ready where nothing holds the program up. */
static double soonest_s(const eb_search *search) {
  double found_s = DBL_MAX;
  for (int c = 0; c < search->num; c++) {
    const eb_candidate *const of = &search->candidates[c];
    double ready_s[EB_SEARCH_MAX_OBSERVED];
    for (int k = 0; k < of->num_observed; k++) ready_s[k] = of->observed[k].ready_s;
    const double typical_s = of->num_observed ? eb_planner_typical_s(ready_s, of->num_observed) : DBL_MAX;
    if (typical_s < found_s) found_s = typical_s;
  }
  return found_s;
}

/* What a candidate took in each start. Its sends may have held the program up before the last partition was ready, at most for
 * as long as they took; where the program was waiting anyway, they have not. */
static void evaluate_each(const eb_candidate *of, double unhindered_s, double *each_s) {
  for (int k = 0; k < of->num_observed; k++) {
    const double later_s = of->observed[k].ready_s - unhindered_s, own_s = of->observed[k].own_s;
    each_s[k] = of->observed[k].after_s + (later_s < 0 ? 0 : later_s < own_s ? later_s : own_s);
  }
}

/* What each candidate takes; DBL_MAX: not seen. */
static void evaluate(const eb_search *search, double *taken_s) {
  const double unhindered_s = soonest_s(search);
  for (int c = 0; c < search->num; c++) {
    const eb_candidate *const of = &search->candidates[c];
    double each_s[EB_SEARCH_MAX_OBSERVED];
    evaluate_each(of, unhindered_s, each_s);
    taken_s[c] = of->num_observed ? eb_planner_typical_s(each_s, of->num_observed) : DBL_MAX;
  }
}

/* Of two candidates that take the same, one is quicker in nearly all pairs of three starts each by chance in a tenth of all
 * searches, in all pairs of four starts in 1 of 70. */
static int num_compared(const eb_search *search, int candidate) {
  const int num = search->candidates[candidate].num_observed;
  return num > 2 && !search->is_strict ? num - 1 : num;
}

/* Was a candidate predicted to be quicker than one message, which the other is, in a search that trusts this? */
static bool is_predicted(const eb_search *search, int candidate, int other) {
  const eb_proposal *const of = &search->candidates[candidate].proposal, *const whole = &search->candidates[other].proposal;
  return search->trusts_predictions && whole->cut.num == 1 && of->predicted_s < TRUSTED * whole->predicted_s;
}

/* The part of all pairs of starts in which a candidate that is clearly quicker than another takes less. */
static double clear_pairs(const eb_search *search, int one, int other) {
  if (search->is_strict) return 1;
  return is_predicted(search, one, other) ? PREDICTED_PAIRS : CLEAR_PAIRS;
}

/* Does one candidate take less than another in nearly all pairs of their starts, without the slowest start of each, because noise
 * only adds? A strict search wants all pairs of all starts. Medians of so few starts differ by chance. */
static bool is_clearly_quicker(const eb_search *search, int one, int other) {
  const double unhindered_s = soonest_s(search);
  const int num_one = num_compared(search, one), num_other = num_compared(search, other);
  double one_s[EB_SEARCH_MAX_OBSERVED], other_s[EB_SEARCH_MAX_OBSERVED];
  int num_quicker = 0;
  evaluate_each(&search->candidates[one], unhindered_s, one_s);
  evaluate_each(&search->candidates[other], unhindered_s, other_s);
  eb_planner_sort_s(one_s, search->candidates[one].num_observed);
  eb_planner_sort_s(other_s, search->candidates[other].num_observed);
  for (int k = 0; k < num_one; k++)
    for (int j = 0; j < num_other; j++) num_quicker += one_s[k] < other_s[j];
  return num_quicker >= clear_pairs(search, one, other) * num_one * num_other;
}

static int least(const eb_search *search, const double *taken_s) {
  int best = 0;
  for (int c = 1; c < search->num; c++)
    if (taken_s[c] < taken_s[best]) best = c;
  return best;
}

/* Does a candidate take so much longer than the best? A difference, because every time contains that of the two ends' clocks;
 * for its size the prediction is good enough. */
static bool is_slower(const eb_search *search, const double *taken_s, int candidate, double times) {
  const int best = least(search, taken_s);
  const double scale_s = search->candidates[best].proposal.predicted_s + UNCLEAR_S;
  return search->candidates[candidate].num_observed > 0 && taken_s[candidate] - taken_s[best] > times * scale_s;
}

/* One message is not given up if others must be clearly quicker than it. */
static bool is_given_up(const eb_search *search, const double *taken_s, int candidate, double times) {
  const bool is_compared = search->is_strict && search->candidates[candidate].proposal.cut.num == 1;
  return !is_compared && is_slower(search, taken_s, candidate, times);
}

/* The next candidate to try: of those with the fewest turns, the predicted best; -1: none. */
static int next_turn(const eb_search *search, const double *taken_s) {
  int next = -1, num_left = 0;
  for (int c = 0; c < search->num; c++) {
    if (is_given_up(search, taken_s, c, GIVEN_UP)) continue;
    num_left++;
    const int num_turns = search->candidates[c].num_turns;
    if (num_turns < MAX_TURNS && (next < 0 || num_turns < search->candidates[next].num_turns)) next = c;
  }
  return num_left > 1 || (next >= 0 && search->candidates[next].num_turns == 0) ? next : -1;
}

/* The times of the last starts arrive later. */
static const eb_cut *wait_for_the_last(eb_search *search, const double *taken_s) {
  return search->num_waited++ < LATER ? &search->candidates[least(search, taken_s)].proposal.cut : NULL;
}

const eb_cut *eb_search_next(eb_search *search, uint64_t start) {
  double taken_s[EB_PLANNER_MAX_CUTS];
  if (search->num < 2) return NULL;
  evaluate(search, taken_s);
  bool begins = false;
  search->tried[start % sizeof search->tried] = -1;
  if (search->num_tries == MAX_TRIES || search->num_waited > 0) return wait_for_the_last(search, taken_s);
  if (search->turn < 0 || search->num_left == 0 || is_given_up(search, taken_s, search->turn, GIVEN_UP_AT_ONCE)) {
    search->turn = next_turn(search, taken_s);
    if (search->turn < 0) return wait_for_the_last(search, taken_s);
    search->candidates[search->turn].num_turns++;
    search->num_left = TURN;
    begins = true;
  }
  search->num_left--;
  search->num_tries++;
  search->tried[start % sizeof search->tried] = begins ? -1 : (signed char)search->turn;
  return &search->candidates[search->turn].proposal.cut;
}

bool eb_search_is_comparable(const eb_search *search, double age_s) {
  return age_s <= COMPARABLE_S || DRIFT * age_s <= UNCLEAR * search->candidates[0].proposal.predicted_s;
}

/* The candidate that is one message; -1: there is none. */
static int find_one_message(const eb_search *search) {
  int c = search->num - 1;
  while (c >= 0 && search->candidates[c].proposal.cut.num != 1) c--;
  return c;
}

static const eb_proposal *one_message(const eb_search *search) {
  const int one = find_one_message(search);
  return one < 0 ? NULL : &search->candidates[one].proposal;
}

const eb_proposal *eb_search_predicted(const eb_search *search) {
  const eb_proposal *const best = &search->candidates[0].proposal, *const one = one_message(search);
  return !one || best->predicted_s < TRUSTED * one->predicted_s ? best : one;
}

/* What the messages of a candidate after its first one cost the rest of the program. */
static double cost_of_further_s(const eb_search *search, int candidate) {
  return (search->candidates[candidate].proposal.cut.num - 1) * search->further_s;
}

/* Is a candidate clearly quicker than one message, by all that its further messages cost? Only what was tried completely counts. */
static bool is_worth_its_messages(const eb_search *search, const double *taken_s, int candidate, int one) {
  const eb_candidate *const of = &search->candidates[candidate], *const whole = &search->candidates[one];
  if (of->num_observed < EB_SEARCH_MAX_OBSERVED || whole->num_observed < EB_SEARCH_MAX_OBSERVED) return false;
  return taken_s[one] - taken_s[candidate] > cost_of_further_s(search, candidate) && is_clearly_quicker(search, candidate, one);
}

const eb_proposal *eb_search_best(const eb_search *search) {
  double taken_s[EB_PLANNER_MAX_CUTS];
  evaluate(search, taken_s);
  const int fastest = least(search, taken_s);
  const double unclear_s = UNCLEAR * search->candidates[fastest].proposal.predicted_s + UNCLEAR_S;
  const int one = find_one_message(search);
  if (taken_s[fastest] == DBL_MAX) return search->is_strict && one >= 0 ? one_message(search) : eb_search_predicted(search);
  int best = fastest;
  for (int c = 0; c < search->num; c++) {
    const bool has_fewer = search->candidates[c].proposal.cut.num < search->candidates[best].proposal.cut.num;
    if (!has_fewer || search->candidates[c].num_observed == 0) continue;
    const double gain_s = taken_s[c] - taken_s[fastest];
    const bool pays = !is_predicted(search, fastest, c) || gain_s > cost_of_further_s(search, fastest);
    if (gain_s <= unclear_s || !pays || !is_clearly_quicker(search, fastest, c)) best = c;
  }
  const bool keeps_one = search->is_strict && one >= 0 && best != one && !is_worth_its_messages(search, taken_s, best, one);
  return &search->candidates[keeps_one ? one : best].proposal;
}

const eb_proposal *eb_search_end(const eb_search *search, bool is_comparable, eb_confirmation *confirmation) {
  const eb_proposal *const best = is_comparable ? eb_search_best(search) : eb_search_predicted(search);
  const eb_proposal *const one = one_message(search);
  const bool was_doubted = confirmation->is_doubted;
  confirmation->is_doubted = confirmation->is_needed && is_comparable && one && best->cut.num > 1 && confirmation->num_in_use < 2 &&
                             !was_doubted;
  return confirmation->is_doubted ? one : best;
}
