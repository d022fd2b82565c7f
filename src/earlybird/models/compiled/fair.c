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

/* One end of all groups: how many processes are unfinished there, and what the present step shares. */
typedef struct {
  const double *bandwidth; /* [n - 1][class] */
  int64_t *left;           /* unfinished messages of each rank */
  int64_t *active;         /* ranks with unfinished messages of each group */
  double *capacity, *shares, *weight, *level, *lowest;
} end;

typedef struct {
  const eb_flows *flows;
  end src, dst;
  double now_s;
  uint32_t *active, num_active; /* bundles with unfinished messages */
  uint32_t *rising, num_rising; /* pairs */
  uint32_t *next;               /* of each bundle: its smallest unfinished message */
  double *served_bytes;         /* of each bundle: what each of its messages has received */
  double *share, *received, *rate; /* of each bundle */
  double *pair_weight, *pair_level; /* of each pair */
} run;

static bool begin_end(end *at, const eb_flows *flows, const double *bandwidth, const int64_t *num_messages) {
  const size_t groups = (size_t)flows->num_groups + 1;
  at->bandwidth = bandwidth;
  at->left = malloc((size_t)(flows->num_ranks + 1) * sizeof *at->left);
  at->active = calloc(groups, sizeof *at->active);
  at->capacity = malloc(groups * sizeof(double));
  at->shares = malloc(groups * sizeof(double));
  at->weight = malloc(groups * sizeof(double));
  at->level = malloc(groups * sizeof(double));
  at->lowest = malloc(groups * sizeof(double));
  if (!at->left || !at->active || !at->capacity || !at->shares || !at->weight || !at->level || !at->lowest) return false;
  memcpy(at->left, num_messages, (size_t)flows->num_ranks * sizeof *at->left);
  for (int64_t rank = 0; rank < flows->num_ranks; rank++) at->active[flows->group[rank]] += num_messages[rank] > 0;
  return true;
}

static void end_end(end *at) {
  free(at->left);
  free(at->active);
  free(at->capacity);
  free(at->shares);
  free(at->weight);
  free(at->level);
  free(at->lowest);
}

static bool begin_run(run *r, const eb_flows *flows, const double *sending, const double *receiving) {
  const size_t bundles = (size_t)flows->num_bundles + 1, pairs = (size_t)flows->num_pairs + 1;
  r->flows = flows;
  r->active = malloc(bundles * sizeof *r->active);
  r->next = malloc(bundles * sizeof *r->next);
  r->served_bytes = calloc(bundles, sizeof(double));
  r->share = malloc(bundles * sizeof(double));
  r->received = malloc(bundles * sizeof(double));
  r->rate = malloc(bundles * sizeof(double));
  r->rising = malloc(pairs * sizeof *r->rising);
  r->pair_weight = malloc(pairs * sizeof(double));
  r->pair_level = malloc(pairs * sizeof(double));
  const bool has_ends = begin_end(&r->src, flows, sending, flows->num_sends) &
                        begin_end(&r->dst, flows, receiving, flows->num_receives);
  if (!has_ends || !r->active || !r->next || !r->served_bytes || !r->share || !r->received || !r->rate || !r->rising ||
      !r->pair_weight || !r->pair_level)
    return false;
  for (uint32_t b = 0; b < flows->num_bundles; b++) {
    r->active[b] = b;
    r->next[b] = flows->bundles[b].first;
  }
  r->num_active = (uint32_t)flows->num_bundles;
  return true;
}

static void end_run(run *r) {
  end_end(&r->src);
  end_end(&r->dst);
  free(r->active);
  free(r->next);
  free(r->served_bytes);
  free(r->share);
  free(r->received);
  free(r->rate);
  free(r->rising);
  free(r->pair_weight);
  free(r->pair_level);
}

static void set_all(const eb_flows *flows, double value, double *src, double *dst) {
  for (int64_t g = 0; g < flows->num_groups; g++) src[g] = dst[g] = value;
}

/* BW(n) of a bundle's class at an end; by_process at a receiving end the mean over all that the process receives, as (12). */
static double bandwidth_at(const run *r, const end *at, uint32_t group, uint32_t b) {
  const int64_t classes = r->flows->num_classes;
  const double *row = at->bandwidth + (at->active[group] - 1) * classes;
  if (!r->flows->by_process || at != &r->dst) return row[r->flows->bundles[b].message_class];
  double mean = 0;
  for (int64_t c = 0; c < classes; c++) mean += row[c] * r->flows->fraction[b * (uint64_t)classes + (uint64_t)c];
  return mean;
}

/* The capacity of each end is the mean of its unfinished messages' bandwidth, each counted by its share; a message's weight at
 * a receiving end is its own bandwidth as a multiple of that. */
static void find_weights(run *r) {
  const eb_flows *flows = r->flows;
  set_all(flows, 0, r->src.capacity, r->dst.capacity);
  set_all(flows, 0, r->src.shares, r->dst.shares);
  for (uint32_t i = 0; i < r->num_active; i++) {
    const uint32_t b = r->active[i];
    const pair of = flows->pairs[flows->bundles[b].pair];
    const double weight = flows->by_process ? 1 / (double)r->dst.left[flows->bundles[b].receiver] : 1;
    const double shares = weight * (flows->bundles[b].end - r->next[b]);
    r->share[b] = weight;
    r->received[b] = bandwidth_at(r, &r->dst, of.dst_end, b);
    r->src.capacity[of.src_end] += shares * bandwidth_at(r, &r->src, of.src_end, b);
    r->dst.capacity[of.dst_end] += shares * r->received[b];
    r->src.shares[of.src_end] += shares;
    r->dst.shares[of.dst_end] += shares;
  }
  for (int64_t g = 0; g < flows->num_groups; g++) {
    r->src.capacity[g] /= r->src.shares[g];
    r->dst.capacity[g] /= r->dst.shares[g];
  }
  r->num_rising = 0;
  for (uint32_t i = 0; i < r->num_active; i++) { /* bundles of a pair follow one another */
    const uint32_t b = r->active[i], p = flows->bundles[b].pair;
    if (i == 0 || flows->bundles[r->active[i - 1]].pair != p) {
      r->rising[r->num_rising++] = p;
      r->pair_weight[p] = 0;
    }
    r->share[b] *= r->received[b] / r->dst.capacity[flows->pairs[p].dst_end];
    r->pair_weight[p] += r->share[b] * (flows->bundles[b].end - r->next[b]);
  }
}

/* Raises the rates of all pairs together, per unit of weight. An end would be full at the level capacity / weight if no other
 * end were. Settling other ends never lowers this level, so every end with the lowest level among the ends that it shares
 * messages with is full at it: many are settled at once, not only the lowest of all. */
static void fill(run *r) {
  const pair *pairs = r->flows->pairs;
  end *src = &r->src, *dst = &r->dst;
  while (r->num_rising) {
    set_all(r->flows, 0, src->weight, dst->weight);
    set_all(r->flows, INFINITY, src->lowest, dst->lowest);
    for (uint32_t i = 0; i < r->num_rising; i++) {
      const uint32_t p = r->rising[i];
      src->weight[pairs[p].src_end] += r->pair_weight[p];
      dst->weight[pairs[p].dst_end] += r->pair_weight[p];
    }
    for (int64_t g = 0; g < r->flows->num_groups; g++) {
      src->level[g] = src->weight[g] > 0 ? src->capacity[g] / src->weight[g] : INFINITY;
      dst->level[g] = dst->weight[g] > 0 ? dst->capacity[g] / dst->weight[g] : INFINITY;
    }
    for (uint32_t i = 0; i < r->num_rising; i++) {
      const pair of = pairs[r->rising[i]];
      const double sent = src->level[of.src_end], received = dst->level[of.dst_end];
      const double level = sent < received ? sent : received;
      r->pair_level[r->rising[i]] = level;
      if (level < src->lowest[of.src_end]) src->lowest[of.src_end] = level;
      if (level < dst->lowest[of.dst_end]) dst->lowest[of.dst_end] = level;
    }
    uint32_t still = 0;
    for (uint32_t i = 0; i < r->num_rising; i++) {
      const uint32_t p = r->rising[i];
      const uint32_t from = pairs[p].src_end, to = pairs[p].dst_end;
      if (src->level[from] <= src->lowest[from] || dst->level[to] <= dst->lowest[to]) {
        src->capacity[from] -= r->pair_weight[p] * r->pair_level[p];
        dst->capacity[to] -= r->pair_weight[p] * r->pair_level[p];
      } else {
        r->rising[still++] = p;
      }
    }
    r->num_rising = still;
  }
}

static void count_down(end *at, uint32_t rank, uint32_t group) {
  if (--at->left[rank] == 0) at->active[group]--;
}

/* Shares the capacities, advances to the next completion and to those that follow within the tolerance. */
static void step(run *r, double tolerance_of_elapsed, double tolerance_s, double *finished_s) {
  const eb_flows *flows = r->flows;
  find_weights(r);
  fill(r);
  double soonest_s = INFINITY;
  for (uint32_t i = 0; i < r->num_active; i++) {
    const uint32_t b = r->active[i];
    r->rate[b] = r->share[b] * r->pair_level[flows->bundles[b].pair];
    const double left_s = ((double)flows->bytes[r->next[b]] - r->served_bytes[b]) / r->rate[b];
    if (left_s < soonest_s) soonest_s = left_s;
  }
  if (soonest_s < 0) soonest_s = 0;
  const double until_s = soonest_s + fmax(tolerance_of_elapsed * (r->now_s + soonest_s), tolerance_s);
  /* What messages that complete within the step leave unused and what they get beyond it is the same if it ends at the mean
   * of their times, weighted by their rates. */
  double rates = 0, rates_s = 0;
  uint32_t still = 0;
  for (uint32_t i = 0; i < r->num_active; i++) {
    const uint32_t b = r->active[i];
    const bundle *of = &flows->bundles[b];
    while (r->next[b] < of->end) {
      const uint32_t k = r->next[b];
      double left_s = ((double)flows->bytes[k] - r->served_bytes[b]) / r->rate[b];
      if (left_s > until_s) break;
      if (left_s < 0) left_s = 0;
      rates += r->rate[b];
      rates_s += r->rate[b] * left_s;
      finished_s[flows->message[k]] = r->now_s + left_s;
      count_down(&r->src, flows->src[k], flows->pairs[of->pair].src_end);
      count_down(&r->dst, flows->dst[k], flows->pairs[of->pair].dst_end);
      r->next[b]++;
    }
    if (r->next[b] < of->end) r->active[still++] = b;
  }
  r->num_active = still;
  const double mean_s = rates_s / rates;
  for (uint32_t i = 0; i < still; i++) r->served_bytes[r->active[i]] += r->rate[r->active[i]] * mean_s;
  r->now_s += mean_s;
}

/* What the busiest end needs if it always has its largest bandwidth. */
static double least_time_s(const eb_flows *flows, int64_t num_counts, const double *bandwidth, bool sends, double *volume) {
  double largest = 0, most = 0;
  for (int64_t i = 0; i < num_counts * flows->num_classes; i++) largest = fmax(largest, bandwidth[i]);
  for (int64_t g = 0; g < flows->num_groups; g++) volume[g] = 0;
  for (int64_t i = 0; i < flows->num_messages; i++)
    volume[flows->group[sends ? flows->src[i] : flows->dst[i]]] += (double)flows->bytes[i];
  for (int64_t g = 0; g < flows->num_groups; g++) most = fmax(most, volume[g]);
  return most / largest;
}

int eb_flows_complete(const eb_flows *flows, int64_t num_counts, const double *sending_bytes_per_s,
                      const double *receiving_bytes_per_s, double tolerance_of_elapsed, double tolerance_of_bound,
                      double *finished_s) {
  run r = {0};
  const bool begun = begin_run(&r, flows, sending_bytes_per_s, receiving_bytes_per_s);
  if (begun) {
    const double bound_s = fmax(least_time_s(flows, num_counts, sending_bytes_per_s, true, r.src.capacity),
                                least_time_s(flows, num_counts, receiving_bytes_per_s, false, r.dst.capacity));
    while (r.num_active) step(&r, tolerance_of_elapsed, tolerance_of_bound * bound_s, finished_s);
  }
  end_run(&r);
  return begun ? 0 : -1;
}
