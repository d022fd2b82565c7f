/* The planner: candidate groupings of partitions, each priced on one timeline. */
#include "partitioned/segmentation/planner.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Partitions are first joined into at most so many atoms, and large ones are cut: proposing stays below ten microseconds. */
#define MAX_ATOMS EB_CUT_MAX_SEGMENTS
#define MIN_PIECE_BYTES (INT64_C(2) * 1024)
#define ALIGNMENT_BYTES INT64_C(64)
#define CAUTION EB_PLANNER_CAUTION
/* A gain that is worth reading the clock. */
#define WANTED_GAIN 0.05
#define WANTED_GAIN_S 0.2e-6
/* By another path, which is compared with messages as soon as it is used. */
#define RING_GAIN_S 0.1e-6
/* A prediction is followed without a trial if it promises this much. */
#define CLEAR_GAIN 0.15
/* From this size on the costs are extrapolated, so only a trial decides. */
#define MIN_UNKNOWN_BYTES (INT64_C(128) * 1024)
/* A cut is tried if its predicted time is at most this many times that of the best one, and this many seconds more. */
#define WORTH_A_TRY 1.6
#define WORTH_A_TRY_S 0.5e-6

static double larger(double a, double b) { return a > b ? a : b; }

/* The path from the sender to the receiver while segments leave one after another. */
typedef struct {
  double free_s, done_s;
} timeline;

/* The overhead of a message is what it adds to a train of them beyond its bytes at full bandwidth, so one follows the
 * other: the sender's part of it is unknown, and in shared memory the receiver copies one after another. */
static void advance(timeline *line, const eb_cost *cost, double ready_s, int64_t bytes) {
  const double alone_s = eb_cost_time_s(cost, bytes), at_full_s = (double)bytes / eb_cost_bandwidth_bytes_per_s(cost);
  /* A link may carry a few KiB faster than it carries on: the bytes of a message take no longer than all of it. */
  const double bytes_s = at_full_s < alone_s || alone_s <= 0 ? at_full_s : alone_s;
  const double busy_s = CAUTION * eb_cost_overhead_s(cost, bytes) + bytes_s;
  const double begin_s = larger(line->free_s, ready_s);
  line->free_s = begin_s + busy_s;
  /* A lone message may take longer than it keeps others back, or less: those of a long train share caches and cores. */
  line->done_s = larger(line->done_s, begin_s + alone_s);
}

double eb_planner_predict_s(const eb_cost *cost, int num, const double *ready_s, const int64_t *bytes) {
  int order[EB_CUT_MAX_SEGMENTS];
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
  return line.done_s - last_s;
}

/* Of one segment that leaves at once, as `advance` computes it. */
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

/* Into how many pieces each partition may be cut: a power of two. */
static int num_pieces(int64_t num_partitions, int64_t partition_bytes) {
  int num = 1;
  while (2 * num * num_partitions <= MAX_ATOMS && partition_bytes / (2 * num) >= MIN_PIECE_BYTES) num *= 2;
  return num;
}

bool eb_planner_is_short(int64_t total_bytes) { return total_bytes < MIN_UNKNOWN_BYTES; }

bool eb_planner_can_gain(const eb_cost *cost, int64_t total_bytes, int64_t partition_bytes) {
  if (!eb_planner_is_short(total_bytes)) return true;
  if (cost->num == 0 || partition_bytes == 0) return false;
  const int64_t least_bytes = partition_bytes / num_pieces(total_bytes / partition_bytes, partition_bytes);
  const double one_s = alone_s(cost, total_bytes), gain_s = one_s - alone_at_least_s(cost, least_bytes);
  return gain_s >= WANTED_GAIN * one_s && gain_s >= WANTED_GAIN_S;
}

bool eb_planner_gains_by_ring(const eb_cost *cost, const eb_cost *ring_cost, int64_t total_bytes) {
  if (cost->num == 0 || !ring_cost || ring_cost->num == 0) return false;
  const double one_s = alone_s(cost, total_bytes), gain_s = one_s - alone_s(ring_cost, total_bytes);
  return gain_s >= WANTED_GAIN * one_s && gain_s >= RING_GAIN_S;
}

int64_t eb_planner_least_bytes(const eb_cost *cost) {
  if (cost->num == 0) return 0;
  int64_t bytes = 64;
  while (!eb_planner_can_gain(cost, bytes, 1)) bytes *= 2;
  return bytes;
}

/* Four places for each factor of two, from 64 B on; the last one is for all larger sizes. */
int eb_planner_first_place(int64_t total_bytes) {
  int octave = 0;
  if (total_bytes < 64) return 0;
  while (total_bytes >> (octave + 1) >= 64) octave++;
  const int place = 4 * octave + (int)(total_bytes >> (octave + 4) & 3);
  return place < EB_PLANNER_FIRST_PLACES ? place : EB_PLANNER_FIRST_PLACES - 1;
}

/* The largest size of a place, which is where it might be beyond a protocol's bound already. */
static int64_t largest_at(int place) { return ((INT64_C(5) + place % 4) << (4 + place / 4)) - 1; }

void eb_planner_first_numbers(const eb_cost *cost, unsigned char *numbers) {
  for (int place = 0; place < EB_PLANNER_FIRST_PLACES; place++) {
    const int64_t bytes = largest_at(place);
    double best_s = cost->num ? alone_s(cost, bytes) : 0;
    numbers[place] = 1;
    for (int num = 2; cost->num && num <= 4; num *= 2) {
      const double ready_s[4] = {0};
      const int64_t part = bytes / num, parts[4] = {part, part, part, part};
      const double taken_s = eb_planner_predict_s(cost, num, ready_s, parts);
      if (best_s - taken_s < CLEAR_GAIN * best_s || best_s - taken_s < WANTED_GAIN_S) continue;
      best_s = taken_s;
      numbers[place] = (unsigned char)num;
    }
  }
}

double eb_planner_spread_s(const eb_planner_input *input) {
  double first_s = DBL_MAX, last_s = -DBL_MAX;
  for (int p = 0; p < input->num_partitions; p++) {
    if (input->ready_s[p] < first_s) first_s = input->ready_s[p];
    last_s = larger(last_s, input->ready_s[p]);
  }
  return last_s - first_s;
}

/* Contiguous runs of partitions that are treated as one. */
typedef struct {
  int num;
  double ready_s[MAX_ATOMS];
  int64_t end_byte[MAX_ATOMS];
} atoms;

/* Many partitions become equal runs of partitions, with the latest partition cut out of its neighbours. */
static void join(atoms *made, const eb_planner_input *input) {
  const int num = input->num_partitions;
  int latest = 0;
  for (int p = 1; p < num; p++)
    if (input->ready_s[p] > input->ready_s[latest]) latest = p;
  const int room = num <= MAX_ATOMS ? MAX_ATOMS : MAX_ATOMS - 2;
  const int run = (num + room - 1) / room;
  made->num = 0;
  for (int p = 0; p < num; p++) {
    const bool begins = p % run == 0 || p == latest || p == latest + 1;
    if (begins) made->ready_s[made->num++] = input->ready_s[p];
    const int a = made->num - 1;
    made->ready_s[a] = larger(made->ready_s[a], input->ready_s[p]);
    made->end_byte[a] = (p + 1) * input->partition_bytes;
  }
}

/* Few large partitions become pieces: an MPI may be quicker with several messages than with one (MPICH and Open MPI take a
 * third less for 8 KiB in two, which go eagerly; Intel MPI half as long for 16 MiB in pieces of 512 KiB). */
static void cut_up(atoms *made, const eb_planner_input *input, int pieces) {
  made->num = 0;
  for (int p = 0; p < input->num_partitions; p++) {
    for (int piece = 1; piece <= pieces; piece++) {
      const int64_t within = input->partition_bytes / pieces * piece & ~(ALIGNMENT_BYTES - 1);
      made->ready_s[made->num] = input->ready_s[p];
      made->end_byte[made->num++] = p * input->partition_bytes + (piece < pieces ? within : input->partition_bytes);
    }
  }
}

static void to_atoms(atoms *made, const eb_planner_input *input) {
  const int pieces = num_pieces(input->num_partitions, input->partition_bytes);
  if (pieces > 1) cut_up(made, input, pieces);
  else join(made, input);
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
  return eb_planner_predict_s(cost, group->num, ready_s, bytes);
}

/* Atoms in the order in which their segments leave: from the first to the last, or the other way. */
typedef struct {
  const eb_cost *cost;
  const atoms *of;
  bool descending;
} ordered_blocks;

/* Grows the group of the places begin .. end-1 in the ordered_blocks by its earliest atom. */
static void extend(const ordered_blocks *in, int begin, double *ready_s) {
  *ready_s = larger(*ready_s, in->of->ready_s[in->descending ? in->of->num - 1 - begin : begin]);
}

/* The timeline once that group has left, too. */
static timeline enqueue(const ordered_blocks *in, timeline line, int begin, int end, double ready_s) {
  const int low = in->descending ? in->of->num - end : begin, high = in->descending ? in->of->num - begin - 1 : end - 1;
  advance(&line, in->cost, ready_s, in->of->end_byte[high] - (low ? in->of->end_byte[low - 1] : 0));
  return line;
}

/* Dynamic programming over the end of the last group: for each the timeline that ends soonest. Made for readiness
 * that ascends (descends), a candidate like others elsewhere; now and then a timeline that ends later, with the way free
 * earlier, would have led to a better end. from[end] is where the last group begins; returns the number of groups. */
static int by_programming(const ordered_blocks *in, unsigned char *from) {
  timeline state[MAX_ATOMS + 1] = {{0, 0}};
  for (int end = 1; end <= in->of->num; end++) {
    double found_s = DBL_MAX, ready_s = 0;
    from[end] = (unsigned char)(end - 1);
    for (int begin = end - 1; begin >= 0; begin--) {
      extend(in, begin, &ready_s);
      const timeline line = enqueue(in, state[begin], begin, end, ready_s);
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
static int by_limited_programming(const ordered_blocks *in, int max_segments, unsigned char *from) {
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
        extend(in, begin, &ready_s);
        if (num == 1 && begin > 0) continue;
        const timeline line = enqueue(in, before[begin], begin, end, ready_s);
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
  const ordered_blocks in = {cost, of, descending};
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

bool eb_cut_equal(const eb_cut *a, const eb_cut *b) {
  return a->num == b->num && a->path == b->path && memcmp(a->end_byte, b->end_byte, (size_t)a->num * sizeof *a->end_byte) == 0;
}

/* The costs of a path; NULL where they are not known, or there is no such path. */
static const eb_cost *cost_of(const eb_planner_input *input, eb_path path) {
  const eb_cost *const costs[EB_NUM_PATHS] = {input->cost, input->ring_cost, input->direct_cost}, *const cost = costs[path];
  return cost && cost->num > 0 ? cost : NULL;
}

double eb_planner_price_s(const eb_planner_input *input, const eb_cut *cut) {
  double ready_s[EB_CUT_MAX_SEGMENTS];
  int64_t bytes[EB_CUT_MAX_SEGMENTS];
  int p = 0;
  for (int s = 0; s < cut->num; s++) {
    const int64_t begin = s ? cut->end_byte[s - 1] : 0;
    bytes[s] = cut->end_byte[s] - begin;
    ready_s[s] = 0;
    while (p > 0 && p * input->partition_bytes > begin) p--;
    for (; p < input->num_partitions && p * input->partition_bytes < cut->end_byte[s]; p++)
      if ((p + 1) * input->partition_bytes > begin) ready_s[s] = larger(ready_s[s], input->ready_s[p]);
  }
  const eb_cost *const cost = cost_of(input, cut->path);
  return eb_planner_predict_s(cost ? cost : input->cost, cut->num, ready_s, bytes);
}

/* Of each path two groupings by programming, equal segments of 2 to 32, and one segment. */
enum { MAX_CONSIDERED = 8 * EB_NUM_PATHS };

/* The proposals so far, the predicted best first. */
typedef struct {
  const atoms *of;
  eb_path path; /* of what is considered now, and its costs */
  const eb_cost *cost;
  int num;
  eb_proposal proposals[MAX_CONSIDERED];
} shortlist;

static void consider(shortlist *list, const grouping *group) {
  eb_proposal made = {{group->num, list->path, {0}}, price(list->cost, list->of, group)};
  for (int g = 0; g < group->num; g++) made.cut.end_byte[g] = list->of->end_byte[group->last_atom[g]];
  for (int c = 0; c < list->num; c++)
    if (eb_cut_equal(&list->proposals[c].cut, &made.cut)) return;
  int at = list->num;
  while (at > 0 && list->proposals[at - 1].predicted_s > made.predicted_s) at--;
  memmove(&list->proposals[at + 1], &list->proposals[at], (size_t)(list->num - at) * sizeof made);
  list->num++;
  list->proposals[at] = made;
}

/* Everything by one path that may be predicted to be the best. */
static void consider_path(shortlist *list, const eb_planner_input *input, eb_path path, int most) {
  grouping candidate;
  bool ascends = true;
  list->path = path;
  list->cost = cost_of(input, path);
  if (!list->cost) return;
  for (int a = 1; a < list->of->num; a++) ascends = ascends && list->of->ready_s[a - 1] <= list->of->ready_s[a];
  for (int kind = 0; kind < (ascends ? 1 : 2); kind++) {
    programmed(list->cost, list->of, kind == 1, most, &candidate);
    consider(list, &candidate);
  }
  for (int num = path == EB_PATH_MESSAGE ? 2 : 1; num <= most; num *= 2) {
    uniform(list->of, num, &candidate);
    consider(list, &candidate);
  }
}

/* Equal segments that are fewer than the predicted best: the next two powers of two from half its number down. */
static bool is_coarser(const eb_cut *cut, const eb_cut *best) {
  const bool is_power = (cut->num & (cut->num - 1)) == 0;
  return is_power && cut->path == best->path && cut->num > 1 && 2 * cut->num <= best->num && 8 * cut->num > best->num;
}

/* Is a proposal the best by its path? Another program may share what one of the paths needs. */
static bool is_best_by_path(const shortlist *list, int place) {
  int first = 0;
  while (list->proposals[first].cut.path != list->proposals[place].cut.path) first++;
  return first == place;
}

/* Leaves out what is predicted to take much longer than the best, but not what is coarser, as far as there are places for it:
 * costs are measured on an idle link, which may carry short messages faster than in a program, so how many segments are best is
 * not predicted well. (Intel MPI, four nodes on two cores, 48 KiB in four partitions: eight segments were predicted to take half as
 * long as four, and took longer.) */
static void leave_out(shortlist *list, int places) {
  enum { BEST, COARSER, NEAR, FAR };
  const double most_s = WORTH_A_TRY * list->proposals[0].predicted_s + WORTH_A_TRY_S;
  int classes[MAX_CONSIDERED], num_left = 0, num = 0;
  bool is_left[MAX_CONSIDERED] = {false};
  for (int c = 0; c < list->num; c++) {
    const eb_proposal *const one = &list->proposals[c];
    if (is_best_by_path(list, c)) classes[c] = BEST;
    else if (is_coarser(&one->cut, &list->proposals[0].cut)) classes[c] = COARSER;
    else classes[c] = one->predicted_s <= most_s ? NEAR : FAR;
  }
  for (int kind = BEST; kind < FAR; kind++)
    for (int c = 0; c < list->num && num_left < places; c++)
      if (classes[c] == kind) num_left += is_left[c] = true;
  for (int c = 0; c < list->num; c++)
    if (is_left[c]) list->proposals[num++] = list->proposals[c];
  list->num = num;
}

int eb_planner_propose(const eb_planner_input *input, int max_segments, eb_proposal *proposals) {
  atoms of;
  grouping candidate;
  shortlist list = {.of = &of, .num = 0};
  to_atoms(&of, input);
  const int most = max_segments < of.num ? max_segments : of.num;
  if (input->cost->num == 0) { /* no costs known: one segment, and candidates for a trial */
    for (int num = 1; num <= most && list.num < EB_PLANNER_MAX_CUTS; num *= 2) {
      uniform(&of, num, &candidate);
      eb_proposal *const made = &proposals[list.num++];
      *made = (eb_proposal){{num, EB_PATH_MESSAGE, {0}}, 0};
      for (int g = 0; g < num; g++) made->cut.end_byte[g] = of.end_byte[candidate.last_atom[g]];
    }
    return list.num;
  }
  consider_path(&list, input, EB_PATH_RING, most);
  consider_path(&list, input, EB_PATH_DIRECT, most);
  consider_path(&list, input, EB_PATH_MESSAGE, most);
  leave_out(&list, EB_PLANNER_MAX_CUTS - 1);
  /* What everything is compared with. */
  uniform(&of, 1, &candidate);
  consider(&list, &candidate);
  memcpy(proposals, list.proposals, (size_t)list.num * sizeof *proposals);
  return list.num;
}

int eb_planner_num_joined(const eb_planner_input *input) {
  atoms of;
  join(&of, input);
  return of.num;
}

void eb_planner_equal(const eb_planner_input *input, int num, eb_path path, eb_proposal *proposal) {
  atoms of;
  grouping group;
  join(&of, input);
  uniform(&of, num, &group);
  const eb_cost *const cost = cost_of(input, path);
  *proposal = (eb_proposal){{num, path, {0}}, cost ? price(cost, &of, &group) : 0};
  for (int g = 0; g < num; g++) proposal->cut.end_byte[g] = of.end_byte[group.last_atom[g]];
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void eb_planner_sort_s(double *values_s, int num) { qsort(values_s, (size_t)num, sizeof *values_s, by_value); }

double eb_planner_typical_s(double *values_s, int num) {
  eb_planner_sort_s(values_s, num);
  return values_s[(num - 1) / 2];
}
