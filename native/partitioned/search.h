/* Finds the cut of a transfer that takes least, by trying some and looking at what they took: predictions rest on costs that
 * were measured in another moment, of other messages. Knows no MPI. */
#ifndef EB_SEARCH_H
#define EB_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/plan.h"

enum { EB_SEARCH_MAX_LOOKS = 4 };

/* What a start took, in seconds. The two ends' clocks may differ, by the same for all starts, so only the difference of two
 * values of after_s means something. */
typedef struct {
  double after_s; /* from the last partition's readiness to the receiver's completion */
  double ready_s; /* from the start to the last partition's readiness */
  double own_s;   /* of that, what our own sends took */
} eb_observation;

typedef struct {
  eb_proposal proposal;
  int num_turns, num_looks; /* turns that were given to it, and starts of which it is known what they took */
  eb_observation looks[EB_SEARCH_MAX_LOOKS];
} eb_candidate;

typedef struct {
  int num, num_tries;
  int turn, num_left; /* the candidate in turn, and how many more starts it has */
  int num_waited;     /* starts until what the last turn took is known */
  eb_candidate candidates[EB_PLAN_MAX_CUTS]; /* the predicted best first */
  signed char tried[8];                      /* the candidate of start s at s % 8; -1: none */
} eb_search;

/* With proposals as eb_plan_propose makes them. */
void eb_search_begin(eb_search *search, int num, const eb_proposal *proposals);

/* What a start took; ignored where that was the first of a turn, or tried no candidate. At most 7 starts later. */
void eb_search_observe(eb_search *search, uint64_t start, const eb_observation *observed);

/* The cut to try in a start, which is later than all that were asked for; NULL: enough was seen. */
const eb_cut *eb_search_next(eb_search *search, uint64_t start);

/* What the predictions alone would take: the best where it is clearly better than one segment. */
const eb_proposal *eb_search_predicted(const eb_search *search);

/* The best of what was seen. Fewer segments win where the difference is not clear: they disturb the rest of the program
 * less. Where nothing was seen, what is predicted. */
const eb_proposal *eb_search_best(const eb_search *search);

#endif
