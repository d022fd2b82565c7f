/* Finds the fastest segmentation of a transfer by trying candidates and measuring their times: predictions use costs that were
 * measured at another time, for other messages. Uses no MPI. */
#ifndef EB_SEARCH_H
#define EB_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/segmentation/planner.h"

enum { EB_SEARCH_MAX_OBSERVED = 4 };

/* The times of a start, in seconds. The clocks of the two sides may have a constant offset, so only differences of after_s are
 * meaningful. */
typedef struct {
  double after_s; /* from the last partition's readiness to the receiver's completion */
  double ready_s; /* from the start to the last partition's readiness */
  double own_s;   /* of that, the time in the library's sends */
} eb_observation;

typedef struct {
  eb_proposal proposal;
  int num_turns, num_observed; /* turns given to it, and its starts with known times */
  eb_observation observed[EB_SEARCH_MAX_OBSERVED];
} eb_candidate;

typedef struct {
  int num, num_tries;
  int turn, num_left; /* the candidate in turn, and how many more starts it has */
  int num_waited;     /* starts until what the last turn took is known */
  bool is_strict;     /* several segments must be quicker in every start; set after eb_search_begin, like the next two */
  bool trusts_predictions; /* what was predicted to be quicker than one message needs less evidence */
  double further_s;   /* what each further message costs others, and must gain if one of these two holds */
  eb_candidate candidates[EB_PLANNER_MAX_CUTS]; /* the predicted best first */
  signed char tried[8];                      /* the candidate of start s at s % 8; -1: none */
} eb_search;

/* The proposals are those of eb_planner_propose. */
void eb_search_begin(eb_search *search, int num, const eb_proposal *proposals);

/* Adds the times of a start; ignored if it was the first of a turn, or tried no candidate. At most 7 starts later. */
void eb_search_observe(eb_search *search, uint64_t start, const eb_observation *observed);

/* Can times be compared that were taken this long apart on two nodes, whose clocks drift apart? The longer the transfer takes,
 * the less it matters. */
bool eb_search_is_comparable(const eb_search *search, double age_s);

/* The candidate for a start, which must be later than in all previous calls; NULL: the search is complete. */
const eb_cut *eb_search_next(eb_search *search, uint64_t start);

/* What two searches must agree on. */
typedef struct {
  bool is_needed;  /* several segments are used only if two searches choose some */
  int num_in_use;  /* segments before the search */
  bool is_doubted; /* the last search chose several, and the next one must, too */
} eb_confirmation;

/* The end of a search: the best measured candidate, or the predicted one if times are not comparable; if it needs confirmation,
 * one segment until a second search agrees. A prediction is not doubted, because the next one would be the same. */
const eb_proposal *eb_search_end(const eb_search *search, bool is_comparable, eb_confirmation *confirmation);

/* The choice by prediction only: the best if it is clearly better than one segment. */
const eb_proposal *eb_search_predicted(const eb_search *search);

/* The best measured candidate. If the difference is not clear, the one with fewer segments: it disturbs the rest of the
 * program less. Without measurements, the predicted one. */
const eb_proposal *eb_search_best(const eb_search *search);

#endif
