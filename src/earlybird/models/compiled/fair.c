/* Max-min fair sharing: every message is a flow through the sending end of one group and the receiving end of another.
 *
 * Messages that always have the same rate are a bundle: those of one class between the same two groups, by_process also to
 * the same receiver. They have received the same number of bytes at any time and complete in order of size, so one number
 * describes all of them. The bundles between the same two groups are a pair. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "order.h"

typedef struct {
  uint32_t first, end; /* of its messages in eb_flows.message */
  uint32_t pair, message_class;
  uint32_t receiver; /* only by_process */
} bundle;

typedef struct {
  uint32_t src_end, dst_end;
} pair;

struct eb_flows {
  int64_t num_messages, num_classes, num_ranks, num_bundles, num_pairs, num_groups;
  bool by_process;
  uint32_t *message;  /* by bundle, then by size */
  int64_t *bytes;     /* of each of these */
  uint32_t *src, *dst; /* of each of these */
  uint32_t *group;    /* of each rank */
  bundle *bundles;
  pair *pairs;
  int64_t *num_sends, *num_receives; /* of each rank */
  double *fraction;                  /* [bundle][class] of the bytes that its receiver gets, only by_process */
};

void eb_flows_destroy(eb_flows *flows) {
  if (!flows) return;
  free(flows->message);
  free(flows->bytes);
  free(flows->src);
  free(flows->dst);
  free(flows->group);
  free(flows->bundles);
  free(flows->pairs);
  free(flows->num_sends);
  free(flows->num_receives);
  free(flows->fraction);
  free(flows);
}

int64_t eb_flows_num_bundles(const eb_flows *flows) { return flows->num_bundles; }

static bool reserve(eb_flows *flows) {
  const size_t messages = (size_t)flows->num_messages + 1, ranks = (size_t)flows->num_ranks + 1;
  flows->message = malloc(messages * sizeof *flows->message);
  flows->bytes = malloc(messages * sizeof *flows->bytes);
  flows->src = malloc(messages * sizeof *flows->src);
  flows->dst = malloc(messages * sizeof *flows->dst);
  flows->group = malloc(ranks * sizeof *flows->group);
  flows->num_sends = calloc(ranks, sizeof *flows->num_sends);
  flows->num_receives = calloc(ranks, sizeof *flows->num_receives);
  return flows->message && flows->bytes && flows->src && flows->dst && flows->group && flows->num_sends && flows->num_receives;
}

/* Sorts the messages by pair, receiver (by_process), class and size. */
static bool sort_messages(eb_flows *flows, const int64_t *src, const int64_t *dst, const int64_t *size_bytes,
                          const int64_t *message_class) {
  const int64_t num = flows->num_messages;
  uint32_t *scratch = malloc((size_t)(num + 1) * sizeof *scratch);
  uint64_t *key = malloc((size_t)(num + 1) * sizeof *key);
  if (scratch && key) {
    for (int64_t i = 0; i < num; i++) flows->message[i] = (uint32_t)i;
    eb_order_by((const uint64_t *)size_bytes, num, flows->message, scratch);
    for (int64_t i = 0; i < num; i++) key[i] = (uint64_t)message_class[i];
    eb_order_by(key, num, flows->message, scratch);
    if (flows->by_process) eb_order_by((const uint64_t *)dst, num, flows->message, scratch);
    for (int64_t i = 0; i < num; i++) key[i] = (uint64_t)flows->group[src[i]] * (uint64_t)flows->num_groups + flows->group[dst[i]];
    eb_order_by(key, num, flows->message, scratch);
    for (int64_t i = 0; i < num; i++) {
      const uint32_t message = flows->message[i];
      flows->bytes[i] = size_bytes[message];
      flows->src[i] = (uint32_t)src[message];
      flows->dst[i] = (uint32_t)dst[message];
    }
  }
  const bool done = scratch && key;
  free(scratch);
  free(key);
  return done;
}

static bool find_bundles(eb_flows *flows, const int64_t *message_class) {
  const int64_t num = flows->num_messages;
  for (int pass = 0; pass < 2; pass++) {
    int64_t bundles = 0, pairs = 0;
    for (int64_t i = 0; i < num; i++) {
      const uint32_t from = flows->group[flows->src[i]], to = flows->group[flows->dst[i]];
      const bool new_pair = i == 0 || from != flows->group[flows->src[i - 1]] || to != flows->group[flows->dst[i - 1]];
      const bool new_bundle = new_pair || message_class[flows->message[i]] != message_class[flows->message[i - 1]] ||
                              (flows->by_process && flows->dst[i] != flows->dst[i - 1]);
      if (pass && new_pair) flows->pairs[pairs] = (pair){from, to};
      pairs += new_pair;
      if (pass && new_bundle)
        flows->bundles[bundles] = (bundle){.first = (uint32_t)i,
                                           .pair = (uint32_t)pairs - 1,
                                           .message_class = (uint32_t)message_class[flows->message[i]],
                                           .receiver = flows->dst[i]};
      bundles += new_bundle;
      if (pass) flows->bundles[bundles - 1].end = (uint32_t)i + 1;
    }
    if (pass) break;
    flows->num_bundles = bundles;
    flows->num_pairs = pairs;
    flows->bundles = malloc((size_t)(bundles + 1) * sizeof *flows->bundles);
    flows->pairs = malloc((size_t)(pairs + 1) * sizeof *flows->pairs);
    if (!flows->bundles || !flows->pairs) return false;
  }
  return true;
}

/* theta of (12): the share of each class in all that the receiver of each bundle gets. */
static bool find_fractions(eb_flows *flows, const int64_t *dst, const int64_t *size_bytes, const int64_t *message_class) {
  if (!flows->by_process) return true;
  const int64_t classes = flows->num_classes;
  double *volume = calloc((size_t)(flows->num_ranks * classes + 1), sizeof *volume);
  flows->fraction = malloc((size_t)(flows->num_bundles * classes + 1) * sizeof *flows->fraction);
  if (volume && flows->fraction) {
    for (int64_t i = 0; i < flows->num_messages; i++) volume[dst[i] * classes + message_class[i]] += (double)size_bytes[i];
    for (int64_t b = 0; b < flows->num_bundles; b++) {
      const double *own = volume + flows->bundles[b].receiver * classes;
      double sum = 0;
      for (int64_t c = 0; c < classes; c++) sum += own[c];
      for (int64_t c = 0; c < classes; c++) flows->fraction[b * classes + c] = own[c] / sum;
    }
  }
  const bool done = volume && flows->fraction;
  free(volume);
  return done;
}

eb_flows *eb_flows_create(int64_t num_messages, const int64_t *src, const int64_t *dst, const int64_t *size_bytes,
                          const int64_t *message_class, int64_t num_classes, int64_t num_ranks, const int64_t *group,
                          bool by_process) {
  eb_flows *flows = calloc(1, sizeof *flows);
  if (!flows) return NULL;
  flows->num_messages = num_messages;
  flows->num_classes = num_classes;
  flows->num_ranks = num_ranks;
  flows->by_process = by_process;
  bool done = reserve(flows);
  if (done) {
    for (int64_t rank = 0; rank < num_ranks; rank++) {
      flows->group[rank] = (uint32_t)group[rank];
      if (group[rank] >= flows->num_groups) flows->num_groups = group[rank] + 1;
    }
    for (int64_t i = 0; i < num_messages; i++) {
      flows->num_sends[src[i]]++;
      flows->num_receives[dst[i]]++;
    }
    done = sort_messages(flows, src, dst, size_bytes, message_class) && find_bundles(flows, message_class) &&
           find_fractions(flows, dst, size_bytes, message_class);
  }
  if (done) return flows;
  eb_flows_destroy(flows);
  return NULL;
}

/* What a group has at one end: unfinished processes, and in the present step their capacity and the pairs that share it. */
typedef struct {
  int64_t active; /* ranks with unfinished messages */
  double capacity, shares, weight;
  uint32_t first_pair, rising; /* where its pairs begin in the list of its end; how many of them are not settled */
} group_end;

typedef struct {
  const double *bandwidth; /* [n - 1][class] */
  int64_t *left;           /* unfinished messages of each rank */
  group_end *groups;
  uint32_t *pairs; /* by group */
} end;

/* A bundle with unfinished messages. */
typedef struct {
  double served_bytes; /* what each of its messages had received when the last step began */
  double weight, rate; /* of each of its messages */
  double next_bytes;   /* the size of its smallest unfinished message, next */
  uint32_t next, bundle, pair;
} active_bundle;

/* A pair with unfinished messages. */
typedef struct {
  double weight, level;
  uint32_t src_end, dst_end;
} active_pair;

typedef struct {
  double level;
  uint32_t group;
  bool sends;
} full_end;

static const double RISES = -1; /* the level of a pair that is not settled */

typedef struct {
  const eb_flows *flows;
  end src, dst;
  double now_s, last_step_s;
  active_bundle *bundles;
  active_pair *pairs;
  full_end *heap; /* the lowest level first */
  uint32_t num_bundles, num_pairs, num_heap;
} run;

static bool begin_end(end *at, const eb_flows *flows, const double *bandwidth, const int64_t *num_messages) {
  at->bandwidth = bandwidth;
  at->left = malloc((size_t)(flows->num_ranks + 1) * sizeof *at->left);
  at->groups = calloc((size_t)(flows->num_groups + 1), sizeof *at->groups);
  at->pairs = malloc((size_t)(flows->num_pairs + 1) * sizeof *at->pairs);
  if (!at->left || !at->groups || !at->pairs) return false;
  memcpy(at->left, num_messages, (size_t)flows->num_ranks * sizeof *at->left);
  for (int64_t rank = 0; rank < flows->num_ranks; rank++) at->groups[flows->group[rank]].active += num_messages[rank] > 0;
  return true;
}

static void end_end(end *at) {
  free(at->left);
  free(at->groups);
  free(at->pairs);
}

static bool begin_run(run *r, const eb_flows *flows, const double *sending, const double *receiving) {
  r->flows = flows;
  r->bundles = malloc((size_t)(flows->num_bundles + 1) * sizeof *r->bundles);
  r->pairs = malloc((size_t)(flows->num_pairs + 1) * sizeof *r->pairs);
  r->heap = malloc(2 * (size_t)(flows->num_groups + 1) * sizeof *r->heap);
  const bool has_ends = begin_end(&r->src, flows, sending, flows->num_sends) &
                        begin_end(&r->dst, flows, receiving, flows->num_receives);
  if (!has_ends || !r->bundles || !r->pairs || !r->heap) return false;
  r->num_bundles = (uint32_t)flows->num_bundles;
  for (uint32_t b = 0; b < r->num_bundles; b++) {
    const uint32_t first = flows->bundles[b].first;
    r->bundles[b] = (active_bundle){.bundle = b, .next = first, .next_bytes = (double)flows->bytes[first]};
  }
  return true;
}

static void end_run(run *r) {
  end_end(&r->src);
  end_end(&r->dst);
  free(r->bundles);
  free(r->pairs);
  free(r->heap);
}

/* BW(n) of a bundle's class at an end; by_process at a receiving end the mean over all that the process receives, as (12). */
static double bandwidth_at(const run *r, const end *at, uint32_t group, uint32_t b) {
  const int64_t classes = r->flows->num_classes;
  const double *row = at->bandwidth + (at->groups[group].active - 1) * classes;
  if (!r->flows->by_process || at != &r->dst) return row[r->flows->bundles[b].message_class];
  double mean = 0;
  for (int64_t c = 0; c < classes; c++) mean += row[c] * r->flows->fraction[b * (uint64_t)classes + (uint64_t)c];
  return mean;
}

static void begin_step(const eb_flows *flows, end *at) {
  for (int64_t g = 0; g < flows->num_groups; g++) at->groups[g] = (group_end){.active = at->groups[g].active};
}

/* The capacity of each end is the mean of its unfinished messages' bandwidth, each counted by its share. */
static void find_capacities(run *r) {
  const eb_flows *flows = r->flows;
  begin_step(flows, &r->src);
  begin_step(flows, &r->dst);
  for (active_bundle *a = r->bundles; a < r->bundles + r->num_bundles; a++) {
    const bundle *of = &flows->bundles[a->bundle];
    const pair between = flows->pairs[of->pair];
    group_end *from = &r->src.groups[between.src_end], *to = &r->dst.groups[between.dst_end];
    a->served_bytes += a->rate * r->last_step_s;
    const double share = flows->by_process ? 1 / (double)r->dst.left[of->receiver] : 1, shares = share * (of->end - a->next);
    const double received = bandwidth_at(r, &r->dst, between.dst_end, a->bundle);
    a->weight = share * received; /* divided by the capacity as soon as it is known */
    from->capacity += shares * bandwidth_at(r, &r->src, between.src_end, a->bundle);
    to->capacity += shares * received;
    from->shares += shares;
    to->shares += shares;
  }
  for (int64_t g = 0; g < flows->num_groups; g++) {
    r->src.groups[g].capacity /= r->src.groups[g].shares;
    r->dst.groups[g].capacity /= r->dst.groups[g].shares;
  }
}

static void begin_lists(const eb_flows *flows, end *at) {
  uint32_t first = 0;
  for (int64_t g = 0; g < flows->num_groups; g++) {
    at->groups[g].first_pair = first;
    first += at->groups[g].rising;
  }
}

/* The pairs of each end, and all weights: a message's at a receiving end is its own bandwidth as a multiple of the capacity. */
static void find_pairs(run *r) {
  const eb_flows *flows = r->flows;
  r->num_pairs = 0;
  uint32_t last = UINT32_MAX;
  for (active_bundle *a = r->bundles; a < r->bundles + r->num_bundles; a++) {
    const bundle *of = &flows->bundles[a->bundle];
    const pair between = flows->pairs[of->pair];
    group_end *from = &r->src.groups[between.src_end], *to = &r->dst.groups[between.dst_end];
    if (of->pair != last) { /* bundles of a pair follow one another */
      last = of->pair;
      r->pairs[r->num_pairs++] = (active_pair){0, RISES, between.src_end, between.dst_end};
      from->rising++;
      to->rising++;
    }
    a->weight /= to->capacity;
    a->pair = r->num_pairs - 1;
    const double weight = a->weight * (of->end - a->next);
    r->pairs[a->pair].weight += weight;
    from->weight += weight;
    to->weight += weight;
  }
  begin_lists(flows, &r->src);
  begin_lists(flows, &r->dst);
  for (uint32_t p = 0; p < r->num_pairs; p++) {
    r->src.pairs[p] = p; /* pairs are in the order of their sending ends */
    r->dst.pairs[r->dst.groups[r->pairs[p].dst_end].first_pair++] = p;
  }
  for (int64_t g = 0; g < flows->num_groups; g++) r->dst.groups[g].first_pair -= r->dst.groups[g].rising;
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

/* The pairs of an end that is full keep their rate. */
static void settle(run *r, const full_end *full) {
  end *at = full->sends ? &r->src : &r->dst, *other = full->sends ? &r->dst : &r->src;
  group_end *group = &at->groups[full->group];
  for (const uint32_t *p = at->pairs + group->first_pair; group->rising; p++) {
    active_pair *of = &r->pairs[*p];
    if (of->level != RISES) continue;
    group_end *to = &other->groups[full->sends ? of->dst_end : of->src_end];
    of->level = full->level;
    group->rising--;
    to->rising--;
    to->capacity -= of->weight * full->level;
    to->weight -= of->weight;
  }
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
      settle(r, top);
      *top = r->heap[--r->num_heap];
    }
    sink(r, 0);
  }
}

static void count_down(end *at, uint32_t rank, uint32_t group) {
  if (--at->left[rank] == 0) at->groups[group].active--;
}

static double ends_s(const active_bundle *a) { return fmax((a->next_bytes - a->served_bytes) / a->rate, 0); }

/* Shares the capacities, advances to the next completion and to those that follow within the tolerance. */
static void step(run *r, double tolerance_of_elapsed, double tolerance_s, double *finished_s) {
  const eb_flows *flows = r->flows;
  find_capacities(r);
  find_pairs(r);
  fill(r);
  double soonest_s = INFINITY;
  for (active_bundle *a = r->bundles; a < r->bundles + r->num_bundles; a++) {
    a->rate = a->weight * r->pairs[a->pair].level;
    soonest_s = fmin(soonest_s, ends_s(a));
  }
  const double until_s = soonest_s + fmax(tolerance_of_elapsed * (r->now_s + soonest_s), tolerance_s);
  /* What messages that complete within the step leave unused and what they get beyond it is the same if it ends at the mean
   * of their times, weighted by their rates. */
  double rates = 0, rates_s = 0;
  uint32_t still = 0;
  for (uint32_t i = 0; i < r->num_bundles; i++) {
    active_bundle *a = &r->bundles[i];
    const bundle *of = &flows->bundles[a->bundle];
    double left_s;
    while (a->next < of->end && (left_s = ends_s(a)) <= until_s) {
      rates += a->rate;
      rates_s += a->rate * left_s;
      finished_s[flows->message[a->next]] = r->now_s + left_s;
      count_down(&r->src, flows->src[a->next], flows->pairs[of->pair].src_end);
      count_down(&r->dst, flows->dst[a->next], flows->pairs[of->pair].dst_end);
      if (++a->next < of->end) a->next_bytes = (double)flows->bytes[a->next];
    }
    if (a->next < of->end) r->bundles[still++] = *a;
  }
  r->num_bundles = still;
  r->last_step_s = rates_s / rates;
  r->now_s += r->last_step_s;
}

/* What the busiest group needs at an end that always has its largest bandwidth. */
static double least_time_s(const eb_flows *flows, int64_t num_counts, end *at, const uint32_t *rank) {
  double largest = 0, most = 0;
  for (int64_t i = 0; i < num_counts * flows->num_classes; i++) largest = fmax(largest, at->bandwidth[i]);
  for (int64_t i = 0; i < flows->num_messages; i++) {
    group_end *group = &at->groups[flows->group[rank[i]]];
    group->shares += (double)flows->bytes[i];
    most = fmax(most, group->shares);
  }
  return most / largest;
}

int eb_flows_complete(const eb_flows *flows, int64_t num_counts, const double *sending_bytes_per_s,
                      const double *receiving_bytes_per_s, double tolerance_of_elapsed, double tolerance_of_bound,
                      double *finished_s) {
  run r = {0};
  const bool begun = begin_run(&r, flows, sending_bytes_per_s, receiving_bytes_per_s);
  if (begun) {
    const double bound_s = fmax(least_time_s(flows, num_counts, &r.src, flows->src),
                                least_time_s(flows, num_counts, &r.dst, flows->dst));
    while (r.num_bundles) step(&r, tolerance_of_elapsed, tolerance_of_bound * bound_s, finished_s);
  }
  end_run(&r);
  return begun ? 0 : -1;
}
