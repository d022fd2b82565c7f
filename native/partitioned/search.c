/* Tries the candidates in turn, and leaves out what is clearly slower than the best so far. */
#include "partitioned/search.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 30 };
/* Candidates that take so many times the predicted time of the best longer than it are not tried again, after one look, two,
 * three ... A single look may have been disturbed. */
static const double given_up[EB_SEARCH_MAX_LOOKS + 1] = {DBL_MAX, 1.0, 0.5, 0.2, 0.1, 0.1};
/* A difference in parts of the predicted time, or in seconds, that is none. */
#define UNCLEAR 0.02
#define UNCLEAR_S 30e-9
/* A prediction alone must promise so much to be followed. */
#define TRUSTED 0.85

void eb_search_begin(eb_search *search, int num, const eb_proposal *proposals) {
  memset(search, 0, sizeof *search);
  memset(search->tried, -1, sizeof search->tried);
  search->num = num;
  for (int c = 0; c < num; c++) search->candidates[c].proposal = proposals[c];
}

void eb_search_observe(eb_search *search, uint64_t start, const eb_observation *observed) {
  const int tried = search->tried[start % sizeof search->tried];
  if (tried < 0) return;
  eb_candidate *const candidate = &search->candidates[tried];
  search->tried[start % sizeof search->tried] = -1;
  if (candidate->num_looks < EB_SEARCH_MAX_LOOKS) candidate->looks[candidate->num_looks++] = *observed;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of two the lower one: noise only adds. */
static double median(double *values, int num) {
  qsort(values, (size_t)num, sizeof *values, by_value);
  return values[(num - 1) / 2];
}

/* The medians of what was seen of a candidate. */
static eb_observation typical(const eb_candidate *of) {
  double after_s[EB_SEARCH_MAX_LOOKS], ready_s[EB_SEARCH_MAX_LOOKS], own_s[EB_SEARCH_MAX_LOOKS];
  for (int k = 0; k < of->num_looks; k++) {
    after_s[k] = of->looks[k].after_s;
    ready_s[k] = of->looks[k].ready_s;
    own_s[k] = of->looks[k].own_s;
  }
  return (eb_observation){median(after_s, of->num_looks), median(ready_s, of->num_looks), median(own_s, of->num_looks)};
}

/* What each candidate takes; DBL_MAX: not seen. Its sends may have held the program up before the last partition was ready,
 * at most for as long as they took; where the program was waiting anyway, they have not. */
static void evaluate(const eb_search *search, double *taken_s) {
  eb_observation seen[EB_PLAN_MAX_CUTS];
  double soonest_s = DBL_MAX;
  for (int c = 0; c < search->num; c++) {
    if (search->candidates[c].num_looks == 0) continue;
    seen[c] = typical(&search->candidates[c]);
    if (seen[c].ready_s < soonest_s) soonest_s = seen[c].ready_s;
  }
  for (int c = 0; c < search->num; c++) {
    taken_s[c] = DBL_MAX;
    if (search->candidates[c].num_looks == 0) continue;
    const double later_s = seen[c].ready_s - soonest_s;
    taken_s[c] = seen[c].after_s + (later_s < seen[c].own_s ? later_s : seen[c].own_s);
  }
}

static int least(const eb_search *search, const double *taken_s) {
  int best = 0;
  for (int c = 1; c < search->num; c++)
    if (taken_s[c] < taken_s[best]) best = c;
  return best;
}

const eb_cut *eb_search_next(eb_search *search, uint64_t start) {
  double taken_s[EB_PLAN_MAX_CUTS];
  if (search->num_tries == MAX_TRIES || search->num < 2) return NULL;
  evaluate(search, taken_s);
  const int best = least(search, taken_s);
  /* A difference, because every time contains that of the two ends' clocks; for its size the prediction is good enough. */
  const double scale_s = search->candidates[best].proposal.predicted_s + UNCLEAR_S;
  int next = -1, num_left = 0;
  for (int c = 0; c < search->num; c++) {
    const eb_candidate *const candidate = &search->candidates[c];
    if (candidate->num_looks > 0 && taken_s[c] - taken_s[best] > given_up[candidate->num_looks] * scale_s) continue;
    num_left++;
    if (candidate->num_tries < EB_SEARCH_MAX_LOOKS && (next < 0 || candidate->num_tries < search->candidates[next].num_tries)) next = c;
  }
  if (next < 0 || (num_left == 1 && search->candidates[next].num_looks > 1)) return NULL;
  search->candidates[next].num_tries++;
  search->num_tries++;
  search->tried[start % sizeof search->tried] = (signed char)next;
  return &search->candidates[next].proposal.cut;
}

const eb_proposal *eb_search_predicted(const eb_search *search) {
  const eb_proposal *best = &search->candidates[0].proposal, *one = best;
  for (int c = 0; c < search->num; c++)
    if (search->candidates[c].proposal.cut.num == 1) one = &search->candidates[c].proposal;
  return best->predicted_s < TRUSTED * one->predicted_s ? best : one;
}

const eb_proposal *eb_search_best(const eb_search *search) {
  double taken_s[EB_PLAN_MAX_CUTS];
  evaluate(search, taken_s);
  int best = least(search, taken_s);
  const double fastest_s = taken_s[best], unclear_s = UNCLEAR * search->candidates[best].proposal.predicted_s + UNCLEAR_S;
  if (fastest_s == DBL_MAX) return eb_search_predicted(search);
  for (int c = 0; c < search->num; c++)
    if (taken_s[c] - fastest_s <= unclear_s && search->candidates[c].proposal.cut.num < search->candidates[best].proposal.cut.num) best = c;
  return &search->candidates[best].proposal;
}
