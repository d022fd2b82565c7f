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
  double *fraction;                  /* [rank][class] of the bytes that it receives, only by_process */
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

int64_t eb_flows_num_messages(const eb_flows *flows) { return flows->num_messages; }

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

static uint64_t pair_of(const eb_flows *flows, uint32_t src, uint32_t dst) {
  return (uint64_t)flows->group[src] * (uint64_t)flows->num_groups + flows->group[dst];
}

/* Orders the messages by pair, those of one in the order given; moved has room for all. */
static bool sort_by_pair(eb_flows *flows, const uint32_t *src, const uint32_t *dst, uint32_t *moved) {
  const int64_t num = flows->num_messages, pairs = flows->num_groups * flows->num_groups;
  uint32_t *const message = flows->message;
  if (pairs <= num) { /* counted */
    uint32_t *place = calloc((size_t)pairs + 1, sizeof *place);
    if (!place) return false;
    for (int64_t i = 0; i < num; i++) place[pair_of(flows, src[message[i]], dst[message[i]]) + 1]++;
    for (int64_t p = 0; p < pairs; p++) place[p + 1] += place[p];
    for (int64_t i = 0; i < num; i++) moved[place[pair_of(flows, src[message[i]], dst[message[i]])]++] = message[i];
    free(place);
  } else {
    uint64_t *key = malloc((size_t)num * sizeof *key + 1);
    uint32_t *order = malloc(2 * (size_t)num * sizeof *order + 1);
    const bool done = key && order;
    for (int64_t i = 0; done && i < num; i++) {
      key[i] = pair_of(flows, src[message[i]], dst[message[i]]);
      order[i] = (uint32_t)i;
    }
    if (done) eb_order_by(key, num, order, order + num);
    for (int64_t i = 0; done && i < num; i++) moved[i] = message[order[i]];
    free(key);
    free(order);
    if (!done) return false;
  }
  memcpy(message, moved, (size_t)num * sizeof *message);
  return true;
}

typedef struct {
  uint64_t *key;
  uint32_t *order, *scratch, *moved; /* for the messages of a pair */
} sorting;

/* Orders the messages of a pair, which are in the order given, by receiver (by_process), class and size. */
static void sort_pair(const eb_flows *flows, uint32_t *message, int64_t num, const uint32_t *dst, const int64_t *size_bytes,
                      const uint16_t *message_class, const sorting *by) {
  for (int64_t i = 0; i < num; i++) {
    by->key[i] = (uint64_t)size_bytes[message[i]];
    by->order[i] = (uint32_t)i;
  }
  eb_order_by(by->key, num, by->order, by->scratch);
  for (int64_t i = 0; i < num; i++)
    by->key[i] = (uint64_t)(flows->by_process ? dst[message[i]] : 0) << 16 | message_class[message[i]];
  eb_order_by(by->key, num, by->order, by->scratch);
  for (int64_t i = 0; i < num; i++) by->moved[i] = message[by->order[i]];
  memcpy(message, by->moved, (size_t)num * sizeof *message);
}

/* Where the messages of the pair of a place end. */
static int64_t end_of_pair(const eb_flows *flows, const uint32_t *src, const uint32_t *dst, int64_t begin) {
  const uint32_t *message = flows->message;
  const uint64_t own = pair_of(flows, src[message[begin]], dst[message[begin]]);
  int64_t end = begin + 1;
  while (end < flows->num_messages && pair_of(flows, src[message[end]], dst[message[end]]) == own) end++;
  return end;
}

/* Sorts the messages by pair, receiver (by_process), class and size. */
static bool sort_messages(eb_flows *flows, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                          const uint16_t *message_class) {
  const int64_t num = flows->num_messages;
  if (!sort_by_pair(flows, src, dst, flows->src)) return false; /* which is written afterwards */
  int64_t most = 0;
  for (int64_t begin = 0, end; begin < num; begin = end) {
    end = end_of_pair(flows, src, dst, begin);
    if (end - begin > most) most = end - begin;
  }
  sorting by = {malloc((size_t)(most + 1) * (sizeof *by.key + 3 * sizeof *by.order)), NULL, NULL, NULL};
  if (!by.key) return false;
  by.order = (uint32_t *)(by.key + most);
  by.scratch = by.order + most;
  by.moved = by.scratch + most;
  for (int64_t begin = 0, end; begin < num; begin = end) {
    end = end_of_pair(flows, src, dst, begin);
    if (end - begin > 1) sort_pair(flows, flows->message + begin, end - begin, dst, size_bytes, message_class, &by);
  }
  free(by.key);
  for (int64_t i = 0; i < num; i++) {
    const uint32_t message = flows->message[i];
    flows->bytes[i] = size_bytes[message];
    flows->src[i] = src[message];
    flows->dst[i] = dst[message];
  }
  return true;
}

static bool find_bundles(eb_flows *flows, const uint16_t *message_class) {
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

/* theta of (12): the share of each class in all that each receiver gets. */
static bool find_fractions(eb_flows *flows, const uint16_t *message_class) {
  if (!flows->by_process) return true;
  const int64_t classes = flows->num_classes;
  flows->fraction = calloc((size_t)(flows->num_ranks * classes + 1), sizeof *flows->fraction);
  if (!flows->fraction) return false;
  for (int64_t i = 0; i < flows->num_messages; i++)
    flows->fraction[flows->dst[i] * classes + message_class[flows->message[i]]] += (double)flows->bytes[i];
  for (int64_t rank = 0; rank < flows->num_ranks; rank++) {
    double *own = flows->fraction + rank * classes, sum = 0;
    for (int64_t c = 0; c < classes; c++) sum += own[c];
    for (int64_t c = 0; c < classes && sum > 0; c++) own[c] /= sum;
  }
  return true;
}

eb_flows *eb_flows_create(int64_t num_messages, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                          const uint16_t *message_class, int64_t num_classes, int64_t num_ranks, const int64_t *group,
                          bool by_process) {
  eb_flows *flows = calloc(1, sizeof *flows);
  if (!flows) return NULL;
  for (int64_t i = 0; i < num_messages; i++) flows->num_messages += size_bytes[i] > 0;
  flows->num_classes = num_classes;
  flows->num_ranks = num_ranks;
  flows->by_process = by_process;
  bool done = reserve(flows);
  if (done) {
    for (int64_t rank = 0; rank < num_ranks; rank++) {
      flows->group[rank] = (uint32_t)group[rank];
      if (group[rank] >= flows->num_groups) flows->num_groups = group[rank] + 1;
    }
    for (int64_t i = 0, k = 0; i < num_messages; i++) {
      if (size_bytes[i] <= 0) continue;
      flows->message[k++] = (uint32_t)i;
      flows->num_sends[src[i]]++;
      flows->num_receives[dst[i]]++;
    }
    done = sort_messages(flows, src, dst, size_bytes, message_class) && find_bundles(flows, message_class) &&
           find_fractions(flows, message_class);
  }
  if (done) return flows;
  eb_flows_destroy(flows);
  return NULL;
}

/* What a group has at one end: unfinished processes, and in the present step their capacity and the pairs that share it. */
typedef struct {
  int64_t active; /* ranks with unfinished messages */
  double capacity, shares, weight;
  uint32_t rising, pairs; /* its pairs that are not settled, and those with unfinished messages */
} group_end;

typedef struct {
  const double *bandwidth; /* [n - 1][class] */
  int64_t *left;           /* unfinished messages of each rank */
  group_end *groups;
  double *level;                /* of each group that is full, else infinity */
  uint32_t *first_pair;         /* of each group in the following, and their end */
  uint32_t *pairs, *other_ends; /* by group: its pairs, and the group at the other end of each */
  uint32_t *place;              /* of each pair in these; this and the next only of receiving ends, and not by_process */
  uint32_t *num_left;           /* [place][class]: unfinished messages */
} end;

/* Messages of which some are unfinished, at least when complete ones were removed the last time. */
typedef struct {
  uint32_t next, end; /* the unfinished ones */
  uint32_t pair, dst_end, message_class;
  uint32_t kind; /* messages of a kind have the same weight: see find_weights */
} active_bundle;

typedef struct {
  double served_bytes; /* what each message of a bundle had received when the last step began */
  double rate;         /* of each */
  double next_bytes;   /* the size of the smallest unfinished one */
} progress;

typedef struct {
  double level;
  uint32_t group;
  bool sends;
} full_end;

typedef struct {
  const eb_flows *flows;
  end src, dst;
  double now_s, last_step_s;
  active_bundle *bundles;
  progress *progress;     /* of each of these */
  double *ends_s;         /* of each of these: when its next message is complete, from now on */
  double *pair_weight;    /* of the unfinished messages of each pair */
  uint32_t *num_of_pair;  /* its bundles with unfinished messages */
  full_end *heap;         /* the lowest level first */
  int64_t *left;          /* unfinished messages by receiving group and class */
  double *share, *weight; /* of a message of each kind */
  uint32_t num_bundles, num_complete, num_heap;
} run;

static uint32_t end_of(const pair *between, bool sends) { return sends ? between->src_end : between->dst_end; }

static bool begin_end(end *at, const eb_flows *flows, const double *bandwidth, const int64_t *num_messages, bool sends) {
  const size_t groups = (size_t)flows->num_groups + 2, pairs = (size_t)flows->num_pairs + 1;
  at->bandwidth = bandwidth;
  at->left = malloc((size_t)(flows->num_ranks + 1) * sizeof *at->left);
  at->groups = calloc(groups, sizeof *at->groups);
  at->level = malloc(groups * sizeof *at->level);
  at->first_pair = calloc(groups, sizeof *at->first_pair);
  at->pairs = malloc(pairs * sizeof *at->pairs);
  at->other_ends = malloc(pairs * sizeof *at->other_ends);
  if (!at->left || !at->groups || !at->level || !at->first_pair || !at->pairs || !at->other_ends) return false;
  memcpy(at->left, num_messages, (size_t)flows->num_ranks * sizeof *at->left);
  for (int64_t rank = 0; rank < flows->num_ranks; rank++) at->groups[flows->group[rank]].active += num_messages[rank] > 0;
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
  free(at->groups);
  free(at->level);
  free(at->first_pair);
  free(at->pairs);
  free(at->other_ends);
  free(at->place);
  free(at->num_left);
}

/* Counts the unfinished messages of the pairs of the receiving ends. */
static bool count_received(end *at, const eb_flows *flows) {
  const int64_t classes = flows->num_classes;
  at->place = malloc((size_t)(flows->num_pairs + 1) * sizeof *at->place);
  at->num_left = calloc((size_t)(flows->num_pairs * classes + 1), sizeof *at->num_left);
  if (!at->place || !at->num_left) return false;
  for (uint32_t place = 0; place < flows->num_pairs; place++) at->place[at->pairs[place]] = place;
  for (const bundle *of = flows->bundles; of < flows->bundles + flows->num_bundles; of++)
    at->num_left[at->place[of->pair] * classes + of->message_class] = of->end - of->first;
  return true;
}

static bool begin_run(run *r, const eb_flows *flows, const double *sending, const double *receiving) {
  const int64_t classes = flows->num_classes, by_group = flows->num_groups * classes;
  const size_t kinds = (size_t)(flows->by_process ? flows->num_ranks : by_group) + 1;
  r->flows = flows;
  r->bundles = malloc((size_t)(flows->num_bundles + 1) * sizeof *r->bundles);
  r->progress = malloc((size_t)(flows->num_bundles + 1) * sizeof *r->progress);
  r->ends_s = malloc((size_t)(flows->num_bundles + 1) * sizeof *r->ends_s);
  r->pair_weight = malloc((size_t)(flows->num_pairs + 1) * sizeof *r->pair_weight);
  r->num_of_pair = calloc((size_t)(flows->num_pairs + 1), sizeof *r->num_of_pair);
  r->heap = malloc(2 * (size_t)(flows->num_groups + 1) * sizeof *r->heap);
  r->left = calloc((size_t)by_group + 1, sizeof *r->left);
  r->share = malloc(kinds * sizeof *r->share);
  r->weight = malloc(kinds * sizeof *r->weight);
  const bool has_ends = begin_end(&r->src, flows, sending, flows->num_sends, true) &
                        begin_end(&r->dst, flows, receiving, flows->num_receives, false);
  const bool has_counts = has_ends && (flows->by_process || count_received(&r->dst, flows));
  if (!has_counts || !r->bundles || !r->progress || !r->ends_s || !r->pair_weight || !r->num_of_pair || !r->heap || !r->left ||
      !r->share || !r->weight)
    return false;
  r->num_bundles = (uint32_t)flows->num_bundles;
  for (uint32_t b = 0; b < r->num_bundles; b++) {
    const bundle *of = &flows->bundles[b];
    const uint32_t dst_end = flows->pairs[of->pair].dst_end, by_class = dst_end * (uint32_t)classes + of->message_class;
    r->left[by_class] += of->end - of->first;
    r->num_of_pair[of->pair]++;
    r->bundles[b] = (active_bundle){.next = of->first,
                                    .end = of->end,
                                    .pair = of->pair,
                                    .dst_end = dst_end,
                                    .message_class = of->message_class,
                                    .kind = flows->by_process ? of->receiver : by_class};
    r->progress[b] = (progress){.next_bytes = (double)flows->bytes[of->first]};
  }
  return true;
}

static void end_run(run *r) {
  end_end(&r->src);
  end_end(&r->dst);
  free(r->bundles);
  free(r->progress);
  free(r->ends_s);
  free(r->pair_weight);
  free(r->num_of_pair);
  free(r->heap);
  free(r->left);
  free(r->share);
  free(r->weight);
}

static const double *bandwidth_of(const run *r, const end *at, uint32_t group) {
  return at->bandwidth + (at->groups[group].active - 1) * r->flows->num_classes;
}

/* BW(n) of what a process receives: the mean over all of it, as (12). */
static double received_of(const run *r, const double *bandwidth, int64_t rank) {
  const int64_t classes = r->flows->num_classes;
  double mean = 0;
  for (int64_t c = 0; c < classes; c++) mean += bandwidth[c] * r->flows->fraction[rank * classes + c];
  return mean;
}

/* The capacity of a receiving end is the mean of its unfinished messages' bandwidth, each counted by its share; the weight of a
 * message there is its own bandwidth as a multiple of that. Messages of a class at one end are alike, by_process those of one
 * receiver. */
static void find_weights(run *r) {
  const eb_flows *flows = r->flows;
  const int64_t classes = flows->num_classes;
  for (int64_t g = 0; g < flows->num_groups; g++) {
    group_end *src = &r->src.groups[g], *dst = &r->dst.groups[g];
    *src = (group_end){.active = src->active, .pairs = src->pairs, .rising = src->pairs};
    *dst = (group_end){.active = dst->active, .pairs = dst->pairs, .rising = dst->pairs};
    r->src.level[g] = r->dst.level[g] = INFINITY;
  }
  if (flows->by_process) {
    for (int64_t rank = 0; rank < flows->num_ranks; rank++) {
      if (r->dst.left[rank] == 0) continue;
      group_end *to = &r->dst.groups[flows->group[rank]];
      r->share[rank] = 1 / (double)r->dst.left[rank];
      r->weight[rank] = received_of(r, bandwidth_of(r, &r->dst, flows->group[rank]), rank);
      to->capacity += r->weight[rank];
      to->shares += 1;
    }
    for (int64_t g = 0; g < flows->num_groups; g++) r->dst.groups[g].capacity /= r->dst.groups[g].shares;
    for (int64_t rank = 0; rank < flows->num_ranks; rank++) {
      if (r->dst.left[rank] == 0) continue;
      group_end *to = &r->dst.groups[flows->group[rank]];
      r->weight[rank] *= r->share[rank] / to->capacity;
      to->weight += r->weight[rank] * (double)r->dst.left[rank];
    }
    return;
  }
  for (uint32_t g = 0; g < flows->num_groups; g++) {
    group_end *to = &r->dst.groups[g];
    if (to->active == 0) continue;
    const double *bandwidth = bandwidth_of(r, &r->dst, g);
    const int64_t *left = r->left + g * classes;
    double *weight = r->weight + g * classes;
    for (int64_t c = 0; c < classes; c++) {
      to->capacity += (double)left[c] * bandwidth[c];
      to->shares += (double)left[c];
    }
    to->capacity /= to->shares;
    for (int64_t c = 0; c < classes; c++) {
      r->share[g * classes + c] = 1;
      weight[c] = bandwidth[c] / to->capacity;
      to->weight += (double)left[c] * weight[c];
    }
  }
}

/* What each pair adds at its sending end. */
static void find_pairs(run *r) {
  const eb_flows *flows = r->flows;
  uint32_t last = UINT32_MAX;
  group_end *from = NULL;
  const double *bandwidth = NULL;
  for (const active_bundle *a = r->bundles; a < r->bundles + r->num_bundles; a++) {
    if (a->pair != last) { /* bundles of a pair follow one another, pairs in the order of their sending ends */
      const uint32_t group = flows->pairs[a->pair].src_end;
      from = &r->src.groups[group];
      bandwidth = from->active ? bandwidth_of(r, &r->src, group) : NULL;
      r->pair_weight[a->pair] = 0;
      last = a->pair;
    }
    if (a->next == a->end) continue;
    const double num = a->end - a->next, shares = r->share[a->kind] * num, weight = r->weight[a->kind] * num;
    from->capacity += shares * bandwidth[a->message_class];
    from->shares += shares;
    from->weight += weight;
    r->pair_weight[a->pair] += weight;
  }
  for (int64_t g = 0; g < flows->num_groups; g++) r->src.groups[g].capacity /= r->src.groups[g].shares;
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
static double received_weight(const run *r, uint32_t group, uint32_t place) {
  const int64_t classes = r->flows->num_classes;
  const uint32_t *num_left = r->dst.num_left + place * classes;
  const double *weight = r->weight + group * classes;
  double sum = 0;
  for (int64_t c = 0; c < classes; c++)
    if (num_left[c]) sum += weight[c] * num_left[c];
  return sum;
}

/* The pairs of an end that is full keep their rate: those of which the other end was not full before. */
static void settle(run *r, const full_end *full) {
  end *at = full->sends ? &r->src : &r->dst, *other = full->sends ? &r->dst : &r->src;
  group_end *group = &at->groups[full->group];
  if (group->rising == 0) return;
  at->level[full->group] = full->level;
  const uint32_t end_of_pairs = at->first_pair[full->group + 1];
  for (uint32_t p = at->first_pair[full->group]; group->rising && p < end_of_pairs; p++) {
    const uint32_t other_end = at->other_ends[p];
    if (other->level[other_end] != INFINITY) continue;
    const double weight = at->num_left ? received_weight(r, full->group, p) : r->pair_weight[at->pairs[p]];
    if (weight == 0) continue; /* its messages are complete */
    group_end *to = &other->groups[other_end];
    group->rising--;
    to->rising--;
    to->capacity -= weight * full->level;
    to->weight -= weight;
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

static double ends_s(const progress *of) { return fmax((of->next_bytes - of->served_bytes) / of->rate, 0); }

/* The rates of all messages, from what they had until now; returns when the next one is complete. */
static double find_rates(run *r) {
  uint32_t last = UINT32_MAX;
  double soonest_s = INFINITY, src_level = 0;
  for (uint32_t i = 0; i < r->num_bundles; i++) {
    const active_bundle *a = &r->bundles[i];
    progress *of = &r->progress[i];
    if (a->pair != last) {
      src_level = r->src.level[r->flows->pairs[a->pair].src_end];
      last = a->pair;
    }
    if (a->next == a->end) {
      r->ends_s[i] = INFINITY;
      continue;
    }
    const double dst_level = r->dst.level[a->dst_end];
    of->served_bytes += of->rate * r->last_step_s;
    of->rate = r->weight[a->kind] * (src_level < dst_level ? src_level : dst_level);
    r->ends_s[i] = ends_s(of);
    if (r->ends_s[i] < soonest_s) soonest_s = r->ends_s[i];
  }
  return soonest_s;
}

static void remove_complete_pairs(const run *r, end *at) {
  const int64_t classes = r->flows->num_classes;
  uint32_t still = 0, place = 0;
  for (int64_t g = 0; g < r->flows->num_groups; g++) {
    const uint32_t end = at->first_pair[g + 1];
    at->first_pair[g] = still;
    for (; place < end; place++) {
      if (r->num_of_pair[at->pairs[place]] == 0) continue;
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
  uint32_t still = 0;
  for (uint32_t i = 0; i < r->num_bundles; i++) {
    if (r->bundles[i].next == r->bundles[i].end) continue;
    r->bundles[still] = r->bundles[i];
    r->progress[still++] = r->progress[i];
  }
  r->num_bundles = still;
  r->num_complete = 0;
  remove_complete_pairs(r, &r->src);
  remove_complete_pairs(r, &r->dst);
}

/* Completes the next message of a bundle. */
static void complete_next(run *r, active_bundle *a, double time_s, double *finished_s) {
  const eb_flows *flows = r->flows;
  const uint32_t src_end = flows->pairs[a->pair].src_end;
  finished_s[flows->message[a->next]] = time_s;
  count_down(&r->src, flows->src[a->next], src_end);
  count_down(&r->dst, flows->dst[a->next], a->dst_end);
  r->left[a->dst_end * flows->num_classes + a->message_class]--;
  if (r->dst.num_left) r->dst.num_left[r->dst.place[a->pair] * flows->num_classes + a->message_class]--;
  if (++a->next < a->end) return;
  r->num_complete++;
  if (--r->num_of_pair[a->pair]) return;
  r->src.groups[src_end].pairs--;
  r->dst.groups[a->dst_end].pairs--;
}

/* Shares the capacities, advances to the next completion and to those that follow within the tolerance. */
static void step(run *r, double tolerance_of_elapsed, double tolerance_s, double *finished_s) {
  find_weights(r);
  find_pairs(r);
  fill(r);
  const double soonest_s = find_rates(r);
  const double until_s = soonest_s + fmax(tolerance_of_elapsed * (r->now_s + soonest_s), tolerance_s);
  /* What messages that complete within the step leave unused and what they get beyond it is the same if it ends at the mean
   * of their times, weighted by their rates. */
  double rates = 0, rates_s = 0;
  for (uint32_t i = 0; i < r->num_bundles; i++) {
    if (r->ends_s[i] > until_s) continue;
    active_bundle *a = &r->bundles[i];
    progress *of = &r->progress[i];
    double left_s = r->ends_s[i];
    do {
      rates += of->rate;
      rates_s += of->rate * left_s;
      complete_next(r, a, r->now_s + left_s, finished_s);
      if (a->next < a->end) of->next_bytes = (double)r->flows->bytes[a->next];
    } while (a->next < a->end && (left_s = ends_s(of)) <= until_s);
  }
  if (r->num_complete > r->num_bundles / 4) remove_complete(r);
  r->last_step_s = rates_s / rates;
  r->now_s += r->last_step_s;
}

/* What the busiest group needs at an end that always has its largest bandwidth. */
static double least_time_s(const eb_flows *flows, int64_t num_counts, end *at, const uint32_t *rank) {
  double largest = 0, most = 0;
  for (int64_t i = 0; i < num_counts * flows->num_classes; i++) largest = fmax(largest, at->bandwidth[i]);
  for (int64_t i = 0; i < flows->num_messages; i++) {
    group_end *group = &at->groups[flows->group[rank[i]]];
    group->shares += (double)flows->bytes[i]; /* until the first step */
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
    while (r.num_bundles > r.num_complete) step(&r, tolerance_of_elapsed, tolerance_of_bound * bound_s, finished_s);
  }
  end_run(&r);
  return begun ? 0 : -1;
}
