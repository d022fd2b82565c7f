/* The planner: candidate groupings of partitions, each priced on one timeline, the cheapest kept. */
#include "partitioned/plan.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Partitions are first joined into at most so many atoms: planning stays below ten microseconds. */
#define MAX_ATOMS 32
/* What a message costs the receiver and the rest of the program is not in the sender's overhead. */
#define CAUTION 1.2
/* Plans are compared with one segment between the starts 8 and 14. What lost there is tried once more from start 128
 * on, because the first messages of an MPI may be slow by themselves: the first 20 to 40 of a size take Intel MPI 20
 * times as long in shared memory. */
enum { TRIAL_BEGINS = 8, TRIAL_ENDS = 14, RETRIAL_BEGINS = 128, RETRIAL_ENDS = 134 };
/* What a plan must gain, in parts of one segment's time, to be kept; and what of the time in use replaces it. */
#define LEAST_GAIN 0.02
#define CHANGED 0.85
#define WANTED_GAIN 0.15
#define WANTED_GAIN_S 0.3e-6

static double larger(double a, double b) { return a > b ? a : b; }

bool eb_plan_is_due(uint64_t start) {
  return start == 2 || start == TRIAL_BEGINS || start == TRIAL_ENDS || start == 32 || start == RETRIAL_BEGINS ||
         start == RETRIAL_ENDS || (start > 128 && start % 256 == 0);
}

int eb_plan_record(uint64_t start) {
  if (start == 1) return EB_PLAN_RECORDS - 1;
  for (int ahead = 2; ahead < 2 + EB_PLAN_RECORDS; ahead++)
    if (start + (uint64_t)ahead != 2 && eb_plan_is_due(start + (uint64_t)ahead)) return EB_PLAN_RECORDS + 1 - ahead;
  return -1;
}

bool eb_plan_is_reported(uint64_t start) { return start > 1 && eb_plan_is_due(start + 2); }

int eb_plan_num_records(uint64_t start) { return start > 2 ? EB_PLAN_RECORDS : 1; }

double eb_plan_typical_s(const double *records_s, int num) {
  if (num == 1) return records_s[EB_PLAN_RECORDS - 1];
  const double a = records_s[0], b = records_s[1], c = records_s[2];
  return larger(a < b ? a : b, c < larger(a, b) ? c : larger(a, b));
}

/* The way from the sender to the receiver while segments leave one after another. */
typedef struct {
  double free_s, done_s;
} timeline;

/* The overhead of a message is what it adds to a train of them beyond its bytes at full bandwidth, so one follows the
 * other: nobody knows which part of it is the sender's, and in shared memory the receiver copies one after another. */
static void advance(timeline *line, const eb_cost *cost, double ready_s, int64_t bytes) {
  const double busy_s = CAUTION * eb_cost_overhead_s(cost, bytes) + (double)bytes / eb_cost_bandwidth_bytes_per_s(cost);
  line->free_s = larger(line->free_s, ready_s) + busy_s;
  /* A lone message may take longer than it keeps others from the way. */
  line->done_s = larger(line->done_s, line->free_s + larger(0, eb_cost_time_s(cost, bytes) - busy_s));
}

double eb_plan_predict_s(const eb_cost *cost, int num, const double *ready_s, const int64_t *bytes) {
  int *order = malloc((size_t)num * sizeof *order);
  if (!order) return DBL_MAX;
  /* Insertion sort: the times are nearly sorted, one way or the other, and few. */
  for (int s = 0; s < num; s++) {
    int at = s;
    while (at > 0 && ready_s[order[at - 1]] > ready_s[s]) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = s;
  }
  timeline line = {0, 0};
  for (int i = 0; i < num; i++) advance(&line, cost, ready_s[order[i]], bytes[order[i]]);
  const double last_s = num ? ready_s[order[num - 1]] : 0;
  free(order);
  return line.done_s - last_s;
}

/* Of one segment that leaves at once, as `advance` reckons. */
static double alone_s(const eb_cost *cost, int64_t bytes) {
  timeline line = {0, 0};
  advance(&line, cost, 0, bytes);
  return line.done_s;
}

/* Of any segment that is no smaller: a later protocol may be quicker. */
static double alone_at_least_s(const eb_cost *cost, int64_t bytes) {
  double least_s = alone_s(cost, bytes);
  for (int p = 0; p < cost->num; p++) {
    const double later_s = cost->protocols[p].min_bytes > bytes ? alone_s(cost, cost->protocols[p].min_bytes) : DBL_MAX;
    if (later_s < least_s) least_s = later_s;
  }
  return least_s;
}

static bool is_clear_gain(double one_s, double best_s) {
  return one_s - best_s >= WANTED_GAIN * one_s && one_s - best_s >= WANTED_GAIN_S;
}

bool eb_plan_can_gain(const eb_cost *cost, int64_t total_bytes, int64_t partition_bytes) {
  return cost->num > 0 && is_clear_gain(alone_s(cost, total_bytes), alone_at_least_s(cost, partition_bytes));
}

/* Contiguous runs of partitions that are planned as one. */
typedef struct {
  int num;
  double ready_s[MAX_ATOMS];
  int64_t end_byte[MAX_ATOMS];
} atoms;

/* Partitions whose readiness differs least from their neighbours' are joined until at most MAX_ATOMS are left:
 * first equal runs of partitions, then the run of the latest partition cut out of its neighbours. */
static void join(atoms *made, int num_partitions, int64_t partition_bytes, const double *ready_s) {
  int latest = 0;
  for (int p = 1; p < num_partitions; p++)
    if (ready_s[p] > ready_s[latest]) latest = p;
  const int room = num_partitions <= MAX_ATOMS ? MAX_ATOMS : MAX_ATOMS - 2;
  const int run = (num_partitions + room - 1) / room;
  made->num = 0;
  for (int p = 0; p < num_partitions; p++) {
    const int previous = p - 1;
    const bool begins = p % run == 0 || p == latest || previous == latest;
    if (begins) made->ready_s[made->num++] = ready_s[p];
    const int a = made->num - 1;
    made->ready_s[a] = larger(made->ready_s[a], ready_s[p]);
    made->end_byte[a] = (p + 1) * partition_bytes;
  }
}

typedef struct {
  int num;
  int last_atom[MAX_ATOMS]; /* of every segment */
} grouping;

static double price(const eb_cost *cost, const atoms *of, const grouping *group) {
  double ready_s[MAX_ATOMS];
  int64_t bytes[MAX_ATOMS];
  int atom = 0;
  for (int g = 0; g < group->num; g++) {
    bytes[g] = of->end_byte[group->last_atom[g]] - (g ? of->end_byte[group->last_atom[g - 1]] : 0);
    ready_s[g] = 0;
    for (; atom <= group->last_atom[g]; atom++) ready_s[g] = larger(ready_s[g], of->ready_s[atom]);
  }
  return eb_plan_predict_s(cost, group->num, ready_s, bytes);
}

/* Atoms in the order in which their segments leave: from the first to the last, or the other way. */
typedef struct {
  const eb_cost *cost;
  const atoms *of;
  bool descending;
} procession;

/* Grows the group of the places begin .. end-1 in the procession by its earliest atom. */
static void include(const procession *in, int begin, double *ready_s) {
  *ready_s = larger(*ready_s, in->of->ready_s[in->descending ? in->of->num - 1 - begin : begin]);
}

/* The timeline once that group has left, too. */
static timeline leave(const procession *in, timeline line, int begin, int end, double ready_s) {
  const int low = in->descending ? in->of->num - end : begin, high = in->descending ? in->of->num - begin - 1 : end - 1;
  advance(&line, in->cost, ready_s, in->of->end_byte[high] - (low ? in->of->end_byte[low - 1] : 0));
  return line;
}

/* Dynamic programming over the end of the last group: for each the timeline that ends soonest. Made for readiness
 * that ascends (descends), a candidate like others elsewhere; now and then a timeline that ends later, with the way free
 * earlier, would have led to a better end. from[end] is where the last group begins; returns the number of groups. */
static int by_programming(const procession *in, unsigned char *from) {
  timeline state[MAX_ATOMS + 1] = {{0, 0}};
  for (int end = 1; end <= in->of->num; end++) {
    double found_s = DBL_MAX, ready_s = 0;
    for (int begin = end - 1; begin >= 0; begin--) {
      include(in, begin, &ready_s);
      const timeline line = leave(in, state[begin], begin, end, ready_s);
      if (line.done_s >= found_s) continue;
      found_s = line.done_s;
      state[end] = line;
      from[end] = (unsigned char)begin;
    }
  }
  int num = 0;
  for (int at = in->of->num; at > 0; at = from[at]) num++;
  return num;
}

/* The same with a number of groups that must not be exceeded: one layer of states for each number. Slower by that
 * factor, and needed only where tags have few bits for segments. */
static int by_limited_programming(const procession *in, int max_segments, unsigned char *from) {
  unsigned char layer_from[MAX_ATOMS + 1][MAX_ATOMS + 1] = {{0}};
  timeline layers[2][MAX_ATOMS + 1] = {{{0, 0}}};
  const int n = in->of->num;
  double best_s = DBL_MAX;
  int best = 1;
  for (int num = 1; num <= max_segments; num++) {
    const timeline *before = layers[(num - 1) % 2];
    timeline *now = layers[num % 2];
    for (int end = num; end <= n; end++) {
      double found_s = DBL_MAX, ready_s = 0;
      for (int begin = end - 1; begin >= num - 1; begin--) {
        include(in, begin, &ready_s);
        if (num == 1 && begin > 0) continue;
        const timeline line = leave(in, before[begin], begin, end, ready_s);
        if (line.done_s >= found_s) continue;
        found_s = line.done_s;
        now[end] = line;
        layer_from[num][end] = (unsigned char)begin;
      }
    }
    if (now[n].done_s < best_s) {
      best_s = now[n].done_s;
      best = num;
    }
  }
  int at = n;
  for (int num = best; num > 0; num--) {
    from[at] = layer_from[num][at];
    at = from[at];
  }
  return best;
}

static void programmed(const eb_cost *cost, const atoms *of, bool descending, int max_segments, grouping *best) {
  const procession in = {cost, of, descending};
  unsigned char from[MAX_ATOMS + 1];
  best->num = by_programming(&in, from);
  if (best->num > max_segments) best->num = by_limited_programming(&in, max_segments, from);
  int at = of->num;
  for (int g = 0; g < best->num; g++) {
    /* Walked from the end: descending groups come out in ascending order of atoms. */
    best->last_atom[descending ? g : best->num - 1 - g] = descending ? of->num - from[at] - 1 : at - 1;
    at = from[at];
  }
}

static void uniform(const atoms *of, int num, grouping *made) {
  made->num = num;
  for (int g = 0; g < num; g++) made->last_atom[g] = (int)((int64_t)of->num * (g + 1) / num) - 1;
}

int eb_plan_choose(const eb_cost *cost, int num_partitions, int64_t partition_bytes, const double *ready_s,
                   int max_segments, int64_t *end_byte, double *predicted_s) {
  atoms of = {0};
  join(&of, num_partitions, partition_bytes, ready_s);
  grouping best, candidate;
  uniform(&of, 1, &best);
  const double one_s = price(cost, &of, &best);
  double best_s = one_s;
  const int most = max_segments < of.num ? max_segments : of.num;
  /* What the last partition takes is left of any plan. */
  const bool can_gain = eb_plan_can_gain(cost, num_partitions * partition_bytes, partition_bytes);
  bool ascends = true;
  for (int a = 1; a < of.num; a++) ascends = ascends && of.ready_s[a - 1] <= of.ready_s[a];
  for (int kind = 0; can_gain && kind < (ascends ? 1 : 2); kind++) {
    programmed(cost, &of, kind == 1, most, &candidate);
    const double candidate_s = price(cost, &of, &candidate);
    if (candidate_s < best_s) {
      best = candidate;
      best_s = candidate_s;
    }
  }
  for (int num = 2; can_gain && num <= most; num *= 2) {
    uniform(&of, num, &candidate);
    const double candidate_s = price(cost, &of, &candidate);
    if (candidate_s < best_s) {
      best = candidate;
      best_s = candidate_s;
    }
  }
  if (!is_clear_gain(one_s, best_s)) {
    uniform(&of, 1, &best);
    best_s = one_s;
  }
  *predicted_s = best_s;
  for (int g = 0; g < best.num; g++) end_byte[g] = of.end_byte[best.last_atom[g]];
  return best.num;
}

static const eb_observation not_seen = {NAN, NAN, NAN};

void eb_trial_begin(eb_trial *trial) { *trial = (eb_trial){not_seen, not_seen, false, 0}; }

void eb_trial_forget_times(eb_trial *trial) { trial->one = trial->many = not_seen; }

static bool is_seen(const eb_observation *observation) { return !isnan(observation->after_s); }

/* Was the plan no clear gain over one segment? Its sends may have held the program up before the last partition was
 * ready, at most for as long as they took; where the program was waiting anyway, they have not. */
static bool has_lost(const eb_trial *trial, const eb_proposal *proposal) {
  if (!is_seen(&trial->one) || !is_seen(&trial->many)) return false;
  const double later_s = trial->many.ready_s - trial->one.ready_s;
  const double held_up_s = larger(0, later_s < trial->many.own_s ? later_s : trial->many.own_s);
  /* A difference, because both contain that of the two ends' clocks; for its size the prediction is good enough. */
  return trial->one.after_s - trial->many.after_s - held_up_s < LEAST_GAIN * proposal->one_s;
}

/* While a plan is in use. */
static eb_decision judge_plan(eb_trial *trial, uint64_t start, const eb_proposal *proposal) {
  if (!is_seen(&trial->one)) {
    if (start != TRIAL_BEGINS || !is_seen(&trial->many)) return proposal->one_s <= proposal->best_s ? EB_USE_ONE : EB_KEEP;
    trial->is_trying = true;
    return EB_USE_ONE;
  }
  if (has_lost(trial, proposal)) {
    trial->refused_gain = proposal->now_s / proposal->one_s;
    return EB_USE_ONE;
  }
  return proposal->best_s < CHANGED * proposal->now_s ? EB_USE_BEST : EB_KEEP;
}

/* While one segment is in use. */
static eb_decision judge_one(eb_trial *trial, uint64_t start, const eb_proposal *proposal) {
  const bool was_trying = trial->is_trying;
  trial->is_trying = false;
  if (was_trying && has_lost(trial, proposal)) {
    trial->refused_gain = proposal->best_s / proposal->one_s;
    return EB_KEEP;
  }
  /* Else what lost is tried again when the program has changed so much that it promises far more. */
  if (start != RETRIAL_BEGINS && trial->refused_gain > 0 && proposal->best_s / proposal->one_s > CHANGED * trial->refused_gain) return EB_KEEP;
  trial->refused_gain = 0;
  if (start == RETRIAL_BEGINS) trial->many = not_seen;
  return proposal->best_s < proposal->one_s ? EB_USE_BEST : EB_KEEP;
}

eb_decision eb_trial_decide(eb_trial *trial, uint64_t start, bool is_one, const eb_observation *observed,
                            const eb_proposal *proposal) {
  if (start == 2) return EB_USE_BEST;
  if (is_seen(observed)) *(is_one ? &trial->one : &trial->many) = *observed;
  return is_one ? judge_one(trial, start, proposal) : judge_plan(trial, start, proposal);
}
