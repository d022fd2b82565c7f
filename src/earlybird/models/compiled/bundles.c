/* Sorts the messages of an exchange between groups into bundles. */
#include "bundles.h"

#include <stdlib.h>
#include <string.h>

#include "order.h"

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
      if (pass && new_pair) flows->pairs[pairs] = (eb_pair){from, to};
      pairs += new_pair;
      if (pass && new_bundle)
        flows->bundles[bundles] = (eb_bundle){.first = (uint32_t)i,
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
