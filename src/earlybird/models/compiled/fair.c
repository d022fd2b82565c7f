/* Max-min fair sharing: every message is a flow through the sending end of one group and the receiving end of another.
 *
 * What a step costs is mostly waiting for memory, of millions of bundles that complete one after the other: what a pass reads
 * of them is next to each other, and small. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arrays.h"
#include "bundles.h"
#include "halves.h"
#include "models.h"

/* Bundles of which a second thread does half: a step takes a millisecond and more. */
enum { MIN_HALVED = 1 << 17 };

/* What a group has at one end in the present step: what still rises shares the capacity by weight. */
typedef struct {
  double capacity, weight;
  double level;    /* of a group that is full, else infinity */
  uint32_t rising; /* its pairs that are not settled */
  uint32_t pairs;  /* those with unfinished messages */
} group_end;

typedef struct {
  const double *bandwidth; /* [n - 1][class] */
  int64_t *left;           /* unfinished messages of each rank */
  int64_t *active;         /* ranks with unfinished messages, of each group */
  group_end *groups;
  uint32_t *first_pair;         /* of each group in the following, and their end */
  uint32_t *num_settled;        /* of each group: its pairs that were settled here in the last step come first */
  uint32_t *pairs, *other_ends; /* by group: its pairs, and the group at the other end of each */
  uint32_t *place;              /* of each pair in these; this and the next only of receiving ends, and not by_process */
  uint32_t *num_left;           /* [place][class]: unfinished messages */
} end;

/* Messages of a kind have the same weight, and share the same receiving end. */
typedef struct {
  double weight, received;               /* that, and times the level of its end: the rate if that limits */
  double weight_before, received_before; /* in the last step */
} kind;

typedef struct {
  double served_bytes; /* what each message of a bundle had received when the last step began */
  double next_bytes;   /* the size of the smallest unfinished one; infinity if none is */
} progress;

typedef struct {
  double level;
  uint32_t group;
  bool sends;
} full_end;

/* A bundle that may have completions in this step: when its next message is complete, from now on, and its rate. */
typedef struct {
  double ends_s, rate;
  uint32_t bundle;
} choice;

/* The sending groups whose bundles are half of all, and what was found in these. */
typedef struct {
  int64_t first_group, end_group;
  choice *chosen;
  uint32_t num_chosen;
  double until_s;
} half;

typedef struct {
  const eb_flows *flows;
  end src, dst;
  double now_s, last_step_s;
  /* Of bundles of which some messages are unfinished, at least when complete ones were removed the last time: */
  uint32_t *first_bundle; /* of each sending group, and their end */
  uint32_t *next, *num;   /* the unfinished messages */
  uint32_t *kind_of, *pair;
  uint16_t *message_class;
  progress *progress;
  choice *chosen; /* by bundle */

  double *pair_weight;   /* of the unfinished messages of each pair */
  uint32_t *num_of_pair; /* its bundles with unfinished messages */
  double *level_before;  /* of each sending end in the last step */
  full_end *heap;        /* the lowest level first */
  int64_t *left;         /* unfinished messages by receiving group and class */
  kind *kinds;           /* of each receiving group and class, by_process of each receiver */
  double *share;         /* only by_process: of a message of each kind */
  uint32_t num_bundles, num_complete, num_heap, num_chosen;
  eb_halves *halves; /* NULL for few bundles */
  half half[2];
  double tolerance_of_elapsed, tolerance_s;
} run;

static uint32_t end_of(const eb_pair *between, bool sends) { return sends ? between->src_end : between->dst_end; }

static bool begin_end(end *at, const eb_flows *flows, const double *bandwidth, const int64_t *num_messages, bool sends) {
  const size_t groups = (size_t)flows->num_groups + 2, pairs = (size_t)flows->num_pairs + 1;
  at->bandwidth = bandwidth;
  at->left = malloc((size_t)(flows->num_ranks + 1) * sizeof *at->left);
  at->active = calloc(groups, sizeof *at->active);
  at->groups = calloc(groups, sizeof *at->groups);
  at->first_pair = calloc(groups, sizeof *at->first_pair);
  at->num_settled = calloc(groups, sizeof *at->num_settled);
  at->pairs = eb_array(pairs * sizeof *at->pairs);
  at->other_ends = eb_array(pairs * sizeof *at->other_ends);
  if (!at->left || !at->active || !at->groups || !at->first_pair || !at->num_settled || !at->pairs || !at->other_ends) return false;
  memcpy(at->left, num_messages, (size_t)flows->num_ranks * sizeof *at->left);
  for (int64_t rank = 0; rank < flows->num_ranks; rank++) at->active[flows->group[rank]] += num_messages[rank] > 0;
  for (int64_t p = 0; p < flows->num_pairs; p++) at->groups[end_of(&flows->pairs[p], sends)].pairs++;
  for (int64_t g = 0; g < flows->num_groups; g++) at->first_pair[g + 1] = at->first_pair[g] + at->groups[g].pairs;
  for (uint32_t p = 0; p < flows->num_pairs; p++) {
    const uint32_t place = at->first_pair[end_of(&flows->pairs[p], sends)]++;
    at->pairs[place] = p;
    at->other_ends[place] = end_of(&flows->pairs[p], !sends);
  }
  for (int64_t g = flows->num_groups; g > 0; g--) at->first_pair[g] = at->first_pair[g - 1];
  at->first_pair[0] = 0;
  return true;
}

static void end_end(end *at) {
  free(at->left);
  free(at->active);
  free(at->groups);
  free(at->first_pair);
  free(at->num_settled);
  free(at->pairs);
  free(at->other_ends);
  free(at->place);
  free(at->num_left);
}

/* Counts the unfinished messages of the pairs of the receiving ends. */
static bool count_received(end *at, const eb_flows *flows) {
  const int64_t classes = flows->num_classes;
  at->place = eb_array((size_t)(flows->num_pairs + 1) * sizeof *at->place);
  at->num_left = eb_array_of_zeros((size_t)(flows->num_pairs * classes + 1), sizeof *at->num_left);
  if (!at->place || !at->num_left) return false;
  for (uint32_t place = 0; place < flows->num_pairs; place++) at->place[at->pairs[place]] = place;
  for (const eb_bundle *of = flows->bundles; of < flows->bundles + flows->num_bundles; of++)
    at->num_left[at->place[of->pair] * classes + of->message_class] = of->end - of->first;
  return true;
}

static void begin_bundles(run *r) {
  const eb_flows *flows = r->flows;
  const int64_t classes = flows->num_classes;
  r->num_bundles = (uint32_t)flows->num_bundles;
  for (uint32_t b = 0; b < r->num_bundles; b++) {
    const eb_bundle *of = &flows->bundles[b];
    const eb_pair *between = &flows->pairs[of->pair];
    const uint32_t by_class = between->dst_end * (uint32_t)classes + of->message_class;
    r->left[by_class] += of->end - of->first;
    r->num_of_pair[of->pair]++;
    r->first_bundle[between->src_end + 1] = b + 1;
    r->next[b] = of->first;
    r->num[b] = of->end - of->first;
    r->kind_of[b] = flows->by_process ? of->receiver : by_class;
    r->pair[b] = of->pair;
    r->message_class[b] = (uint16_t)of->message_class;
    r->progress[b] = (progress){.next_bytes = (double)flows->bytes[of->first]};
  }
  for (int64_t g = 0; g < flows->num_groups; g++)
    if (r->first_bundle[g + 1] < r->first_bundle[g]) r->first_bundle[g + 1] = r->first_bundle[g];
}

static bool begin_run(run *r, const eb_flows *flows, const double *sending, const double *receiving) {
  const size_t by_group = (size_t)(flows->num_groups * flows->num_classes) + 1, bundles = (size_t)flows->num_bundles + 1;
  const size_t kinds = flows->by_process ? (size_t)flows->num_ranks + 1 : by_group, groups = (size_t)flows->num_groups + 2;
  r->flows = flows;
  r->first_bundle = calloc(groups, sizeof *r->first_bundle);
  r->next = eb_array(bundles * sizeof *r->next);
  r->num = eb_array(bundles * sizeof *r->num);
  r->kind_of = eb_array(bundles * sizeof *r->kind_of);
  r->pair = eb_array(bundles * sizeof *r->pair);
  r->message_class = eb_array(bundles * sizeof *r->message_class);
  r->progress = eb_array(bundles * sizeof *r->progress);
  r->chosen = eb_array(bundles * sizeof *r->chosen);
  r->pair_weight = eb_array((size_t)(flows->num_pairs + 1) * sizeof *r->pair_weight);
  r->num_of_pair = eb_array_of_zeros((size_t)(flows->num_pairs + 1), sizeof *r->num_of_pair);
  r->level_before = calloc(groups, sizeof *r->level_before);
  r->heap = malloc(2 * groups * sizeof *r->heap);
  r->left = calloc(by_group, sizeof *r->left);
  r->kinds = calloc(kinds, sizeof *r->kinds);
  r->share = malloc(kinds * sizeof *r->share);
  const bool has_ends = begin_end(&r->src, flows, sending, flows->num_sends, true) &
                        begin_end(&r->dst, flows, receiving, flows->num_receives, false);
  const bool has_counts = has_ends && (flows->by_process || count_received(&r->dst, flows));
  if (!has_counts || !r->first_bundle || !r->next || !r->num || !r->kind_of || !r->pair || !r->message_class || !r->progress ||
      !r->chosen || !r->pair_weight || !r->num_of_pair || !r->level_before || !r->heap || !r->left || !r->kinds || !r->share)
    return false;
  begin_bundles(r);
  return true;
}

static void end_run(run *r) {
  end_end(&r->src);
  end_end(&r->dst);
  free(r->first_bundle);
  free(r->next);
  free(r->num);
  free(r->kind_of);
  free(r->pair);
  free(r->message_class);
  free(r->progress);
  free(r->chosen);
  free(r->pair_weight);
  free(r->num_of_pair);
  free(r->level_before);
  free(r->heap);
  free(r->left);
  free(r->kinds);
  free(r->share);
  eb_halves_destroy(r->halves);
}

static const double *bandwidth_of(const run *r, const end *at, int64_t group) {
  return at->bandwidth + (at->active[group] - 1) * r->flows->num_classes;
}

/* BW(n) of what a process receives: the mean over all of it, as (12). */
static double received_of(const run *r, const double *bandwidth, int64_t rank) {
  const int64_t classes = r->flows->num_classes;
  double mean = 0;
  for (int64_t c = 0; c < classes; c++) mean += bandwidth[c] * r->flows->fraction[rank * classes + c];
  return mean;
}

static void begin_step(end *at, int64_t num_groups) {
  for (int64_t g = 0; g < num_groups; g++) {
    group_end *group = &at->groups[g];
    *group = (group_end){.level = INFINITY, .rising = group->pairs, .pairs = group->pairs};
  }
}

/* The capacity of a receiving end is the mean of its unfinished messages' bandwidth, each counted by its share; the weight of a
 * message there is its own bandwidth as a multiple of that. Messages of a class at one end are alike. */
static void find_weights(run *r) {
  const int64_t classes = r->flows->num_classes;
  for (int64_t g = 0; g < r->flows->num_groups; g++) {
    group_end *to = &r->dst.groups[g];
    if (r->dst.active[g] == 0) continue;
    const double *bandwidth = bandwidth_of(r, &r->dst, g);
    const int64_t *left = r->left + g * classes;
    kind *kinds = r->kinds + g * classes;
    double shares = 0;
    for (int64_t c = 0; c < classes; c++) {
      to->capacity += (double)left[c] * bandwidth[c];
      shares += (double)left[c];
    }
    to->capacity /= shares;
    for (int64_t c = 0; c < classes; c++) {
      kinds[c].weight = bandwidth[c] / to->capacity;
      to->weight += (double)left[c] * kinds[c].weight;
    }
  }
}

/* The same by_process: those of one receiver are alike. */
static void find_weights_by_process(run *r) {
  const eb_flows *flows = r->flows;
  for (int64_t rank = 0; rank < flows->num_ranks; rank++) {
    if (r->dst.left[rank] == 0) continue;
    r->share[rank] = 1 / (double)r->dst.left[rank];
    r->kinds[rank].weight = received_of(r, bandwidth_of(r, &r->dst, flows->group[rank]), rank);
    r->dst.groups[flows->group[rank]].capacity += r->kinds[rank].weight;
  }
  for (int64_t g = 0; g < flows->num_groups; g++) r->dst.groups[g].capacity /= (double)r->dst.active[g];
  for (int64_t rank = 0; rank < flows->num_ranks; rank++) {
    if (r->dst.left[rank] == 0) continue;
    group_end *to = &r->dst.groups[flows->group[rank]];
    r->kinds[rank].weight *= r->share[rank] / to->capacity;
    to->weight += r->kinds[rank].weight * (double)r->dst.left[rank];
  }
}

/* What each pair adds at its sending end. */
static inline void find_pairs_of(run *r, int64_t group, bool by_process) {
  group_end *from = &r->src.groups[group];
  const double *bandwidth = bandwidth_of(r, &r->src, group);
  double capacity = 0, all_shares = 0, all_weight = 0, of_pair = 0;
  uint32_t last = UINT32_MAX;
  for (uint32_t b = r->first_bundle[group]; b < r->first_bundle[group + 1]; b++) {
    const double num = r->num[b], shares = by_process ? r->share[r->kind_of[b]] * num : num;
    const double weight = num ? r->kinds[r->kind_of[b]].weight * num : 0;
    capacity += shares * bandwidth[r->message_class[b]];
    all_shares += shares;
    all_weight += weight;
    of_pair = r->pair[b] == last ? of_pair + weight : weight; /* bundles of a pair follow one another */
    last = r->pair[b];
    r->pair_weight[last] = of_pair;
  }
  from->capacity = capacity / all_shares;
  from->weight = all_weight;
}

static void find_pairs(void *of, int number) {
  run *r = of;
  for (int64_t g = r->half[number].first_group; g < r->half[number].end_group; g++) {
    if (r->src.active[g] == 0) {
      for (uint32_t b = r->first_bundle[g]; b < r->first_bundle[g + 1]; b++) r->pair_weight[r->pair[b]] = 0;
    } else if (r->flows->by_process) {
      find_pairs_of(r, g, true);
    } else {
      find_pairs_of(r, g, false);
    }
  }
}

/* Moves the end at a place of the heap down to where it belongs. */
static void sink(run *r, uint32_t at) {
  const full_end moved = r->heap[at];
  for (;;) {
    uint32_t below = 2 * at + 1;
    if (below >= r->num_heap) break;
    if (below + 1 < r->num_heap && r->heap[below + 1].level < r->heap[below].level) below++;
    if (moved.level <= r->heap[below].level) break;
    r->heap[at] = r->heap[below];
    at = below;
  }
  r->heap[at] = moved;
}

static void begin_heap(run *r) {
  r->num_heap = 0;
  for (int sends = 0; sends < 2; sends++) {
    const group_end *groups = sends ? r->src.groups : r->dst.groups;
    for (uint32_t g = 0; g < r->flows->num_groups; g++)
      if (groups[g].rising) r->heap[r->num_heap++] = (full_end){groups[g].capacity / groups[g].weight, g, sends};
  }
  for (uint32_t at = r->num_heap / 2; at-- > 0;) sink(r, at);
}

/* What find_pairs finds of the pair at a place of a receiving end. The pairs of an end are next to each other here and far
 * apart there: to wait for memory was most of the time of large exchanges. */
static inline double received_weight(const run *r, int64_t group, uint32_t place) {
  const int64_t classes = r->flows->num_classes;
  const uint32_t *num_left = r->dst.num_left + place * classes;
  const kind *kinds = r->kinds + group * classes;
  double sum = kinds[0].weight * num_left[0];
  for (int64_t c = 1; c < classes; c++) sum += kinds[c].weight * num_left[c];
  return sum;
}

static void exchange_pairs(end *at, uint32_t one, uint32_t other, int64_t classes) {
  const uint32_t pair = at->pairs[one], other_end = at->other_ends[one];
  at->pairs[one] = at->pairs[other];
  at->other_ends[one] = at->other_ends[other];
  at->pairs[other] = pair;
  at->other_ends[other] = other_end;
  if (!at->num_left) return;
  at->place[at->pairs[one]] = one;
  at->place[pair] = other;
  for (int64_t c = 0; c < classes; c++) {
    const uint32_t num = at->num_left[one * classes + c];
    at->num_left[one * classes + c] = at->num_left[other * classes + c];
    at->num_left[other * classes + c] = num;
  }
}

/* Settles the pair at a place of an end that is full, unless the other end was full before, or its messages are complete. */
static inline bool settle_pair(group_end *to, double weight, double level) {
  if (to->level != INFINITY || weight == 0) return false;
  to->rising--;
  to->capacity -= weight * level;
  to->weight -= weight;
  return true;
}

/* The pairs of an end that is full keep their rate. Most are the same as in the last step: these come first, so that the
 * others, which other ends limit, need not be looked at once all are found. */
static inline void settle_at(run *r, end *at, end *other, int64_t full, double level, bool by_count) {
  const int64_t classes = r->flows->num_classes;
  const uint32_t first = at->first_pair[full], end_of_pairs = at->first_pair[full + 1];
  const uint32_t *const other_ends = at->other_ends, *const pairs = at->pairs;
  const double *const pair_weight = r->pair_weight;
  group_end *const groups = other->groups;
  uint32_t settled = first + at->num_settled[full], rising = at->groups[full].rising;
  for (uint32_t p = first; rising && p < settled;) {
    const double weight = by_count ? received_weight(r, full, p) : pair_weight[pairs[p]];
    if (settle_pair(&groups[other_ends[p]], weight, level)) {
      rising--;
      p++;
    } else {
      exchange_pairs(at, p, --settled, classes);
    }
  }
  for (uint32_t p = settled; rising && p < end_of_pairs; p++) {
    if (groups[other_ends[p]].level != INFINITY) continue;
    const double weight = by_count ? received_weight(r, full, p) : pair_weight[pairs[p]];
    if (!settle_pair(&groups[other_ends[p]], weight, level)) continue;
    rising--;
    exchange_pairs(at, p, settled++, classes);
  }
  at->num_settled[full] = settled - first;
  at->groups[full].rising = 0;
}

static void settle(run *r, const full_end *full) {
  end *at = full->sends ? &r->src : &r->dst, *other = full->sends ? &r->dst : &r->src;
  if (at->groups[full->group].rising == 0) return;
  at->groups[full->group].level = full->level;
  if (at->num_left) {
    settle_at(r, at, other, full->group, full->level, true);
  } else {
    settle_at(r, at, other, full->group, full->level, false);
  }
}

/* Begins to read the pairs of an end that is settled soon. */
static void prefetch_end(const run *r, const full_end *soon) {
  enum { LINE = 16, LINES = 4 };
  const end *at = soon->sends ? &r->src : &r->dst;
  const uint32_t first = at->first_pair[soon->group];
  for (uint32_t p = first; p < first + LINES * LINE; p += LINE) {
    __builtin_prefetch(&at->other_ends[p]);
    if (at->num_left) __builtin_prefetch(&at->num_left[p * r->flows->num_classes]);
    else __builtin_prefetch(&at->pairs[p]);
  }
  if (!at->num_left) __builtin_prefetch(&r->pair_weight[at->pairs[first]]);
}

/* Raises the rates of all pairs together, per unit of weight. An end is full at the level capacity / weight of what still rises
 * there. To settle one never lowers the level of another, so the levels in the heap are at most too low: an end that comes to
 * the top too early sinks again. */
static void fill(run *r) {
  begin_heap(r);
  while (r->num_heap) {
    full_end *top = r->heap;
    const group_end *group = &(top->sends ? &r->src : &r->dst)->groups[top->group];
    if (group->rising && group->capacity / group->weight > top->level) {
      top->level = group->capacity / group->weight;
    } else {
      if (r->num_heap > 2) {
        prefetch_end(r, top + 1);
        prefetch_end(r, top + 2);
      }
      settle(r, top);
      *top = r->heap[--r->num_heap];
    }
    sink(r, 0);
  }
}

static void count_down(end *at, uint32_t rank, uint32_t group) {
  if (--at->left[rank] == 0) at->active[group]--;
}

/* The rates that the receiving ends would allow. */
static void find_kinds(run *r) {
  const eb_flows *flows = r->flows;
  const int64_t of_group = flows->by_process ? 1 : flows->num_classes,
                num = flows->by_process ? flows->num_ranks : flows->num_groups;
  for (int64_t i = 0; i < num; i++) {
    const double level = r->dst.groups[flows->by_process ? flows->group[i] : i].level;
    for (kind *of = r->kinds + i * of_group; of < r->kinds + (i + 1) * of_group; of++) of->received = of->weight * level;
  }
}

static double smaller(double a, double b) { return a < b ? a : b; }

/* When the next message of a bundle is complete, from now on. */
static double ends_s(const progress *of, double rate) { return fmax((of->next_bytes - of->served_bytes) / rate, 0); }

/* What all messages of a half had until now, and by their rates the bundles that may have completions until the step ends. */
static void find_next(void *of_run, int number) {
  run *r = of_run;
  half *own_half = &r->half[number];
  choice *chosen = own_half->chosen = r->chosen + r->first_bundle[own_half->first_group];
  double soonest_s = INFINITY, until_s = INFINITY;
  for (int64_t g = own_half->first_group; g < own_half->end_group; g++) {
    const double level = r->src.groups[g].level, before = r->level_before[g], last_step_s = r->last_step_s;
    for (uint32_t b = r->first_bundle[g]; b < r->first_bundle[g + 1]; b++) {
      progress *of = &r->progress[b];
      const kind *own = &r->kinds[r->kind_of[b]];
      of->served_bytes += smaller(own->weight_before * before, own->received_before) * last_step_s;
      const double rate = smaller(own->weight * level, own->received);
      /* Rather some too many than a division for each; what is no number ends now. */
      if (of->next_bytes - of->served_bytes > until_s * rate * (1 + 1e-9) || r->num[b] == 0) continue;
      const double own_s = ends_s(of, rate);
      if (own_s > until_s) continue;
      *chosen++ = (choice){own_s, rate, b};
      if (own_s >= soonest_s) continue;
      soonest_s = own_s;
      until_s = soonest_s + fmax(r->tolerance_of_elapsed * (r->now_s + soonest_s), r->tolerance_s);
    }
    r->level_before[g] = level;
  }
  own_half->num_chosen = (uint32_t)(chosen - own_half->chosen);
  own_half->until_s = until_s;
}

/* Keeps the bundles that complete a message until a time, which was not known when they were chosen. */
static void choose(run *r, double until_s) {
  r->num_chosen = 0;
  for (int number = 0; number < 2; number++) {
    const half *of = &r->half[number];
    for (uint32_t k = 0; k < of->num_chosen; k++)
      if (!(of->chosen[k].ends_s > until_s)) r->chosen[r->num_chosen++] = of->chosen[k];
  }
}

/* Halves the bundles; a group has all of its own in one half. */
static void divide(run *r) {
  const int64_t num = r->flows->num_groups;
  int64_t middle = 0;
  while (middle < num && r->first_bundle[middle] < r->num_bundles / 2) middle++;
  r->half[0] = (half){.first_group = 0, .end_group = middle};
  r->half[1] = (half){.first_group = middle, .end_group = num};
}

static void remove_complete_pairs(const run *r, end *at) {
  const int64_t classes = r->flows->num_classes;
  uint32_t still = 0, place = 0;
  for (int64_t g = 0; g < r->flows->num_groups; g++) {
    const uint32_t end = at->first_pair[g + 1];
    at->first_pair[g] = still;
    const uint32_t settled_end = place + at->num_settled[g];
    for (; place < end; place++) {
      if (r->num_of_pair[at->pairs[place]] == 0) {
        at->num_settled[g] -= place < settled_end;
        continue;
      }
      at->pairs[still] = at->pairs[place];
      if (at->num_left) {
        at->place[at->pairs[place]] = still;
        memmove(at->num_left + still * classes, at->num_left + place * classes, (size_t)classes * sizeof *at->num_left);
      }
      at->other_ends[still++] = at->other_ends[place];
    }
  }
  at->first_pair[r->flows->num_groups] = still;
}

/* Removes the bundles and pairs without unfinished messages, which cost time until then. */
static void remove_complete(run *r) {
  uint32_t still = 0, b = 0;
  for (int64_t g = 0; g < r->flows->num_groups; g++) {
    const uint32_t end = r->first_bundle[g + 1];
    r->first_bundle[g] = still;
    for (; b < end; b++) {
      if (r->num[b] == 0) continue;
      r->next[still] = r->next[b];
      r->num[still] = r->num[b];
      r->kind_of[still] = r->kind_of[b];
      r->pair[still] = r->pair[b];
      r->message_class[still] = r->message_class[b];
      r->progress[still++] = r->progress[b];
    }
  }
  r->first_bundle[r->flows->num_groups] = still;
  r->num_bundles = still;
  r->num_complete = 0;
  remove_complete_pairs(r, &r->src);
  remove_complete_pairs(r, &r->dst);
}

/* Completes the next message of a bundle. */
static void complete_next(run *r, uint32_t bundle, double time_s, const eb_flow_times *times) {
  const eb_flows *flows = r->flows;
  const uint32_t pair = r->pair[bundle], message_class = r->message_class[bundle], next = r->next[bundle];
  const uint32_t src = flows->src[next], dst = flows->dst[next], src_end = flows->group[src], dst_end = flows->group[dst];
  if (times->finished_s) times->finished_s[flows->message[next]] = time_s;
  if (times->received_s && time_s > times->received_s[dst]) times->received_s[dst] = time_s;
  if (times->sent_s && times->waits[message_class] && time_s > times->sent_s[src]) times->sent_s[src] = time_s;
  count_down(&r->src, src, src_end);
  count_down(&r->dst, dst, dst_end);
  r->left[dst_end * flows->num_classes + message_class]--;
  if (r->dst.num_left) r->dst.num_left[r->dst.place[pair] * flows->num_classes + message_class]--;
  r->next[bundle]++;
  if (--r->num[bundle]) {
    r->progress[bundle].next_bytes = (double)flows->bytes[next + 1];
    return;
  }
  r->progress[bundle].next_bytes = INFINITY;
  r->num_complete++;
  if (--r->num_of_pair[pair]) return;
  r->src.groups[src_end].pairs--;
  r->dst.groups[dst_end].pairs--;
}

/* Begins to read what complete_next needs of bundles that come later: what is known from the bundle, then from these, and from
 * these again. */
static void prefetch(const run *r, uint32_t now, const eb_flow_times *times) {
  enum { STAGE = 12 };
  const eb_flows *flows = r->flows;
  if (now + 3 * STAGE < r->num_chosen) {
    const choice *of = &r->chosen[now + 3 * STAGE];
    __builtin_prefetch(&r->next[of->bundle], 1);
    __builtin_prefetch(&r->num[of->bundle], 1);
    __builtin_prefetch(&r->pair[of->bundle]);
    __builtin_prefetch(&r->message_class[of->bundle]);
    __builtin_prefetch(&r->progress[of->bundle], 1);
  }
  if (now + 2 * STAGE < r->num_chosen) {
    const choice *of = &r->chosen[now + 2 * STAGE];
    const uint32_t next = r->next[of->bundle], pair = r->pair[of->bundle];
    if (times->finished_s) __builtin_prefetch(&flows->message[next]);
    __builtin_prefetch(&flows->src[next]);
    __builtin_prefetch(&flows->dst[next]);
    __builtin_prefetch(&r->num_of_pair[pair], 1);
    if (r->dst.place) __builtin_prefetch(&r->dst.place[pair]);
  }
  if (now + STAGE < r->num_chosen) {
    const choice *of = &r->chosen[now + STAGE];
    if (times->finished_s) __builtin_prefetch(&times->finished_s[flows->message[r->next[of->bundle]]], 1);
    if (r->dst.place) __builtin_prefetch(&r->dst.num_left[r->dst.place[r->pair[of->bundle]] * flows->num_classes], 1);
  }
}

/* Shares the capacities, advances to the next completion and to those that follow within the tolerance. */
static void step(run *r, const eb_flow_times *times) {
  const int64_t num_kinds = r->flows->by_process ? r->flows->num_ranks : r->flows->num_groups * r->flows->num_classes;
  for (kind *of = r->kinds; of < r->kinds + num_kinds; of++) {
    of->weight_before = of->weight;
    of->received_before = of->received;
  }
  begin_step(&r->src, r->flows->num_groups);
  begin_step(&r->dst, r->flows->num_groups);
  if (r->flows->by_process) {
    find_weights_by_process(r);
  } else {
    find_weights(r);
  }
  eb_halves_do(r->halves, find_pairs, r);
  fill(r);
  find_kinds(r);
  eb_halves_do(r->halves, find_next, r);
  const double until_s = smaller(r->half[0].until_s, r->half[1].until_s);
  choose(r, until_s);
  /* What messages that complete within the step leave unused and what they get beyond it is the same if it ends at the mean
   * of their times, weighted by their rates. */
  double rates = 0, rates_s = 0;
  for (uint32_t k = 0; k < r->num_chosen; k++) {
    const uint32_t b = r->chosen[k].bundle;
    const double rate = r->chosen[k].rate;
    double left_s = r->chosen[k].ends_s;
    prefetch(r, k, times);
    do {
      rates += rate;
      rates_s += rate * left_s;
      complete_next(r, b, r->now_s + left_s, times);
    } while (r->num[b] && (left_s = ends_s(&r->progress[b], rate)) <= until_s);
  }
  if (r->num_complete > r->num_bundles / 4) {
    remove_complete(r);
    divide(r);
  }
  r->last_step_s = rates_s / rates;
  r->now_s += r->last_step_s;
}

/* What the busiest group needs at an end that always has its largest bandwidth. */
static double least_time_s(const eb_flows *flows, int64_t num_counts, end *at, const uint32_t *rank) {
  double largest = 0, most = 0;
  for (int64_t i = 0; i < num_counts * flows->num_classes; i++) largest = fmax(largest, at->bandwidth[i]);
  for (int64_t i = 0; i < flows->num_messages; i++) {
    group_end *group = &at->groups[flows->group[rank[i]]];
    group->weight += (double)flows->bytes[i]; /* until the first step */
    most = fmax(most, group->weight);
  }
  return most / largest;
}

int eb_flows_complete(const eb_flows *flows, int64_t num_counts, const double *sending_bytes_per_s,
                      const double *receiving_bytes_per_s, double tolerance_of_elapsed, double tolerance_of_bound,
                      const eb_flow_times *times) {
  run r = {0};
  const bool begun = begin_run(&r, flows, sending_bytes_per_s, receiving_bytes_per_s);
  if (begun) {
    const double bound_s = fmax(least_time_s(flows, num_counts, &r.src, flows->src),
                                least_time_s(flows, num_counts, &r.dst, flows->dst));
    r.tolerance_of_elapsed = tolerance_of_elapsed;
    r.tolerance_s = tolerance_of_bound * bound_s;
    if (r.num_bundles >= MIN_HALVED) r.halves = eb_halves_create();
    divide(&r);
    while (r.num_bundles > r.num_complete) step(&r, times);
  }
  end_run(&r);
  return begun ? 0 : -1;
}
