/* The staircase model of an exchange that changes: ranks that move, and messages that change their size.
 *
 * Everything that a change does not reach is kept. It reaches the messages of the moved ranks, whose level and class may be
 * others; the groups that lose or get a member, or of which a member receives other messages; and the ranks that wait for a send
 * to one of these. */
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "staircase.h"

enum { SAME_SOCKET, ACROSS_SOCKETS, BETWEEN_NODES, NUM_LEVELS };
enum { INSIDE, OUTSIDE, NUM_PARTS }; /* of a node: what competes with each other */

struct eb_exchange {
  int64_t num_ranks, num_messages, num_nodes, num_sockets, num_classes;
  int64_t level_first[NUM_LEVELS + 1]; /* classes of each level */
  int64_t num_of_level[NUM_LEVELS];    /* messages */
  int64_t *min_bytes;
  double *latency_s, *bandwidth[NUM_PARTS]; /* [n - 1][class of the part] */
  bool *waits;
  int64_t *src, *dst, *bytes, *class_of; /* of each message */
  double *fraction;                      /* of each message, (9) */
  int64_t *in_first, *in, *out_first, *out; /* messages by receiver and size, and by sender */
  int64_t *node, *socket, *before, *after, *head; /* the ranks of a node are a list */
  int64_t *volume, *count;                        /* [rank][class] received */
  double *receive_s[NUM_PARTS], *send_s[NUM_PARTS], *delay_s[NUM_PARTS]; /* of each rank; delay: of latencies */
  /* What the present change has reached, by its number. */
  int64_t change, *receiver_at, *sender_at, *group_at[NUM_PARTS];
  int64_t *receivers, *senders, *groups[NUM_PARTS], num_receivers, num_senders, num_groups[NUM_PARTS];
  int64_t *members, *group_volume;
  double *group_s;
  void *work;
};

static int level_of(const eb_exchange *x, int64_t message) {
  const int64_t src = x->src[message], dst = x->dst[message];
  if (x->node[src] != x->node[dst]) return BETWEEN_NODES;
  return x->socket[src] == x->socket[dst] ? SAME_SOCKET : ACROSS_SOCKETS;
}

static int level_of_class(const eb_exchange *x, int64_t message_class) {
  int level = SAME_SOCKET;
  while (message_class >= x->level_first[level + 1]) level++;
  return level;
}

static int part_of(const eb_exchange *x, int64_t message_class) {
  return message_class < x->level_first[BETWEEN_NODES] ? INSIDE : OUTSIDE;
}

static int64_t class_of(const eb_exchange *x, int64_t message) {
  const int level = level_of(x, message);
  int64_t found = x->level_first[level + 1] - 1;
  while (found > x->level_first[level] && x->min_bytes[found] > x->bytes[message]) found--;
  return found;
}

static void reach(int64_t *at, int64_t *list, int64_t *num, int64_t change, int64_t item) {
  if (at[item] == change) return;
  at[item] = change;
  list[(*num)++] = item;
}

static void reach_receiver(eb_exchange *x, int64_t rank) {
  reach(x->receiver_at, x->receivers, &x->num_receivers, x->change, rank);
}

static void reach_groups(eb_exchange *x, int64_t rank, int part) {
  const int64_t group = part == INSIDE ? x->node[rank] * x->num_sockets + x->socket[rank] : x->node[rank];
  reach(x->group_at[part], x->groups[part], &x->num_groups[part], x->change, group);
}

static void count_message(eb_exchange *x, int64_t message, int64_t message_class, int64_t sign) {
  const int64_t at = x->dst[message] * x->num_classes + message_class;
  x->volume[at] += sign * x->bytes[message];
  x->count[at] += sign;
  x->num_of_level[level_of_class(x, message_class)] += sign;
}

/* The message belongs to another class now, or has another size: `bytes` is the former one. */
static void reclassify(eb_exchange *x, int64_t message, int64_t bytes) {
  const int64_t before = x->class_of[message], after = class_of(x, message);
  if (before == after && bytes == x->bytes[message]) return;
  const int64_t now = x->bytes[message];
  x->bytes[message] = bytes;
  count_message(x, message, before, -1);
  x->bytes[message] = now;
  count_message(x, message, after, 1);
  x->class_of[message] = after;
  reach_receiver(x, x->dst[message]);
  reach_groups(x, x->dst[message], part_of(x, before));
  reach_groups(x, x->dst[message], part_of(x, after));
  /* It may wait for another message now, or for none. */
  reach(x->sender_at, x->senders, &x->num_senders, x->change, x->src[message]);
}

/* (9) for each level by itself, and the latencies. */
static void update_receiver(eb_exchange *x, int64_t rank) {
  int64_t volume[NUM_LEVELS] = {0}, left[NUM_LEVELS] = {0}, until[NUM_LEVELS] = {0};
  const int64_t *own_volume = x->volume + rank * x->num_classes, *own_count = x->count + rank * x->num_classes;
  x->delay_s[INSIDE][rank] = x->delay_s[OUTSIDE][rank] = 0;
  for (int level = 0; level < NUM_LEVELS; level++)
    for (int64_t c = x->level_first[level]; c < x->level_first[level + 1]; c++) {
      volume[level] += own_volume[c];
      left[level] += own_count[c];
      x->delay_s[level == BETWEEN_NODES][rank] += (double)own_count[c] * x->latency_s[c];
    }
  for (int64_t i = x->in_first[rank]; i < x->in_first[rank + 1]; i++) {
    const int64_t message = x->in[i], bytes = x->bytes[message];
    const int level = level_of(x, message);
    until[level] += bytes;
    left[level]--;
    x->fraction[message] = (double)(until[level] + left[level] * bytes) / (double)(volume[level] ? volume[level] : 1);
  }
}

static void update_group(eb_exchange *x, int part, int64_t group) {
  const int64_t first = part == INSIDE ? 0 : x->level_first[BETWEEN_NODES];
  const int64_t classes = (part == INSIDE ? x->level_first[BETWEEN_NODES] : x->num_classes) - first;
  const int64_t node = part == INSIDE ? group / x->num_sockets : group;
  int64_t num = 0;
  for (int64_t rank = x->head[node]; rank >= 0; rank = x->after[rank]) {
    if (part == INSIDE && x->socket[rank] != group % x->num_sockets) continue;
    const int64_t *own = x->volume + rank * x->num_classes + first;
    bool has_bytes = false;
    for (int64_t c = 0; c < classes; c++) has_bytes = has_bytes || own[c] > 0;
    if (has_bytes) {
      memcpy(x->group_volume + num * classes, own, (size_t)classes * sizeof *own);
      x->members[num++] = rank;
    } else {
      x->receive_s[part][rank] = 0;
    }
  }
  if (num) eb_group_times(num, classes, x->group_volume, x->bandwidth[part], x->work, x->group_s);
  for (int64_t i = 0; i < num; i++) {
    const int64_t rank = x->members[i];
    if (x->receive_s[part][rank] == x->group_s[i] && x->receiver_at[rank] != x->change) continue;
    x->receive_s[part][rank] = x->group_s[i];
    for (int64_t k = x->in_first[rank]; k < x->in_first[rank + 1]; k++)
      if (x->waits[x->class_of[x->in[k]]]) reach(x->sender_at, x->senders, &x->num_senders, x->change, x->src[x->in[k]]);
  }
}

/* (8): the last of the sends that the rank waits for, in each part. */
static void update_sender(eb_exchange *x, int64_t rank) {
  double last_s[NUM_PARTS] = {0};
  for (int64_t i = x->out_first[rank]; i < x->out_first[rank + 1]; i++) {
    const int64_t message = x->out[i], message_class = x->class_of[message];
    if (!x->waits[message_class]) continue;
    const int part = part_of(x, message_class);
    const double done_s = x->fraction[message] * x->receive_s[part][x->dst[message]];
    if (done_s > last_s[part]) last_s[part] = done_s;
  }
  x->send_s[INSIDE][rank] = last_s[INSIDE];
  x->send_s[OUTSIDE][rank] = last_s[OUTSIDE];
}

static void settle(eb_exchange *x) {
  for (int64_t i = 0; i < x->num_receivers; i++) update_receiver(x, x->receivers[i]);
  for (int part = 0; part < NUM_PARTS; part++)
    for (int64_t i = 0; i < x->num_groups[part]; i++) update_group(x, part, x->groups[part][i]);
  for (int64_t i = 0; i < x->num_senders; i++) update_sender(x, x->senders[i]);
}

static void begin_change(eb_exchange *x) {
  x->change++;
  x->num_receivers = x->num_senders = x->num_groups[INSIDE] = x->num_groups[OUTSIDE] = 0;
}

static void leave_node(eb_exchange *x, int64_t rank) {
  if (x->before[rank] >= 0) x->after[x->before[rank]] = x->after[rank];
  else x->head[x->node[rank]] = x->after[rank];
  if (x->after[rank] >= 0) x->before[x->after[rank]] = x->before[rank];
}

static void enter_node(eb_exchange *x, int64_t rank, int64_t node, int64_t socket) {
  x->node[rank] = node;
  x->socket[rank] = socket;
  x->before[rank] = -1;
  x->after[rank] = x->head[node];
  if (x->head[node] >= 0) x->before[x->head[node]] = rank;
  x->head[node] = rank;
}

void eb_exchange_move(eb_exchange *x, int64_t num, const int64_t *ranks, const int64_t *nodes, const int64_t *sockets) {
  begin_change(x);
  for (int64_t i = 0; i < num; i++) {
    const int64_t rank = ranks[i];
    for (int part = 0; part < NUM_PARTS; part++) reach_groups(x, rank, part);
    leave_node(x, rank);
    enter_node(x, rank, nodes[i], sockets[i]);
    for (int part = 0; part < NUM_PARTS; part++) reach_groups(x, rank, part);
  }
  for (int64_t i = 0; i < num; i++) {
    const int64_t rank = ranks[i];
    for (int64_t k = x->in_first[rank]; k < x->in_first[rank + 1]; k++) reclassify(x, x->in[k], x->bytes[x->in[k]]);
    for (int64_t k = x->out_first[rank]; k < x->out_first[rank + 1]; k++) reclassify(x, x->out[k], x->bytes[x->out[k]]);
  }
  settle(x);
}

/* Puts a message of a receiver to its place by size. */
static void sort_in(eb_exchange *x, int64_t message) {
  const int64_t rank = x->dst[message];
  int64_t place = x->in_first[rank];
  while (x->in[place] != message) place++;
  for (; place > x->in_first[rank] && x->bytes[x->in[place - 1]] > x->bytes[message]; place--) x->in[place] = x->in[place - 1];
  for (; place + 1 < x->in_first[rank + 1] && x->bytes[x->in[place + 1]] < x->bytes[message]; place++)
    x->in[place] = x->in[place + 1];
  x->in[place] = message;
}

void eb_exchange_resize(eb_exchange *x, int64_t num, const int64_t *messages, const int64_t *size_bytes) {
  begin_change(x);
  for (int64_t i = 0; i < num; i++) {
    const int64_t before = x->bytes[messages[i]];
    x->bytes[messages[i]] = size_bytes[i];
    sort_in(x, messages[i]);
    reclassify(x, messages[i], before);
  }
  settle(x);
}

static double total_s(const eb_exchange *x, int part, int64_t rank) {
  const double receive_s = x->receive_s[part][rank], send_s = x->send_s[part][rank];
  return x->delay_s[part][rank] + (receive_s > send_s ? receive_s : send_s);
}

double eb_exchange_slowest_s(const eb_exchange *x, int64_t *slowest) {
  double slowest_s = 0;
  *slowest = 0;
  for (int64_t rank = 0; rank < x->num_ranks; rank++) {
    const double both_s = total_s(x, INSIDE, rank) + total_s(x, OUTSIDE, rank);
    if (both_s > slowest_s) {
      slowest_s = both_s;
      *slowest = rank;
    }
  }
  return slowest_s;
}

int64_t eb_exchange_num_messages(const eb_exchange *x, int level) { return x->num_of_level[level]; }

void eb_exchange_times(const eb_exchange *x, double *intra_node_s, double *inter_node_s) {
  for (int64_t rank = 0; rank < x->num_ranks; rank++) {
    intra_node_s[rank] = total_s(x, INSIDE, rank);
    inter_node_s[rank] = total_s(x, OUTSIDE, rank);
  }
}

enum { NUM_OWNED = 39 };

static void list_owned(const eb_exchange *x, void *owned[NUM_OWNED]) {
  void *const all[NUM_OWNED] = {x->min_bytes,
                                x->latency_s,
                                x->bandwidth[INSIDE],
                                x->bandwidth[OUTSIDE],
                                x->waits,
                                x->src,
                                x->dst,
                                x->bytes,
                                x->class_of,
                                x->fraction,
                                x->in_first,
                                x->in,
                                x->out_first,
                                x->out,
                                x->node,
                                x->socket,
                                x->before,
                                x->after,
                                x->head,
                                x->volume,
                                x->count,
                                x->receive_s[INSIDE],
                                x->receive_s[OUTSIDE],
                                x->send_s[INSIDE],
                                x->send_s[OUTSIDE],
                                x->delay_s[INSIDE],
                                x->delay_s[OUTSIDE],
                                x->receiver_at,
                                x->sender_at,
                                x->group_at[INSIDE],
                                x->group_at[OUTSIDE],
                                x->receivers,
                                x->senders,
                                x->groups[INSIDE],
                                x->groups[OUTSIDE],
                                x->members,
                                x->group_volume,
                                x->group_s,
                                x->work};
  memcpy(owned, all, sizeof all);
}

static bool has_memory(const eb_exchange *x) {
  void *owned[NUM_OWNED];
  list_owned(x, owned);
  for (int i = 0; i < NUM_OWNED; i++)
    if (!owned[i]) return false;
  return true;
}

void eb_exchange_destroy(eb_exchange *x) {
  if (!x) return;
  void *owned[NUM_OWNED];
  list_owned(x, owned);
  for (int i = 0; i < NUM_OWNED; i++) free(owned[i]);
  free(x);
}

static int64_t *copied_integers(const int64_t *values, int64_t num) {
  int64_t *copy = malloc(((size_t)num + 1) * sizeof *copy);
  if (copy && num) memcpy(copy, values, (size_t)num * sizeof *copy);
  return copy;
}

static double *copied_reals(const double *values, int64_t num) {
  double *copy = malloc(((size_t)num + 1) * sizeof *copy);
  if (copy && num) memcpy(copy, values, (size_t)num * sizeof *copy);
  return copy;
}

static int64_t *zero_integers(int64_t num) { return calloc((size_t)num + 1, sizeof(int64_t)); }

static double *zero_reals(int64_t num) { return calloc((size_t)num + 1, sizeof(double)); }

/* What is computed later. */
static void reserve(eb_exchange *x) {
  const int64_t ranks = x->num_ranks, messages = x->num_messages, groups = x->num_nodes * x->num_sockets;
  x->class_of = zero_integers(messages);
  x->fraction = zero_reals(messages);
  x->in_first = zero_integers(ranks + 1);
  x->in = zero_integers(messages);
  x->out_first = zero_integers(ranks + 1);
  x->out = zero_integers(messages);
  x->before = zero_integers(ranks);
  x->after = zero_integers(ranks);
  x->head = zero_integers(x->num_nodes);
  x->volume = zero_integers(ranks * x->num_classes);
  x->count = zero_integers(ranks * x->num_classes);
  x->receiver_at = zero_integers(ranks);
  x->sender_at = zero_integers(ranks);
  x->receivers = zero_integers(ranks);
  x->senders = zero_integers(ranks);
  for (int part = 0; part < NUM_PARTS; part++) {
    x->receive_s[part] = zero_reals(ranks);
    x->send_s[part] = zero_reals(ranks);
    x->delay_s[part] = zero_reals(ranks);
    x->group_at[part] = zero_integers(groups);
    x->groups[part] = zero_integers(groups);
  }
  x->members = zero_integers(ranks);
  x->group_volume = zero_integers(ranks * x->num_classes);
  x->group_s = zero_reals(ranks);
  x->work = malloc(eb_group_work_bytes(ranks, x->num_classes));
}

/* Messages by one of their ends, those of an end in the order given. */
static void list_by(const int64_t *rank_of, const int64_t *order, int64_t num_messages, int64_t num_ranks, int64_t *first,
                    int64_t *list) {
  for (int64_t m = 0; m < num_messages; m++) first[rank_of[m] + 1]++;
  for (int64_t rank = 0; rank < num_ranks; rank++) first[rank + 1] += first[rank];
  for (int64_t i = 0; i < num_messages; i++) {
    const int64_t message = order ? order[i] : i;
    list[first[rank_of[message]]++] = message;
  }
  for (int64_t rank = num_ranks; rank > 0; rank--) first[rank] = first[rank - 1];
  first[0] = 0;
}

eb_exchange *eb_exchange_create(int64_t num_ranks, const int64_t *node, const int64_t *socket, int64_t num_nodes,
                                int64_t num_sockets, int64_t num_messages, const int64_t *src, const int64_t *dst,
                                const int64_t *size_bytes, const int64_t *by_size, const int64_t *level_first,
                                const int64_t *min_bytes, const double *latency_s, const bool *waits, int64_t num_counts,
                                const double *inside_bytes_per_s, const double *outside_bytes_per_s) {
  eb_exchange *x = calloc(1, sizeof *x);
  if (!x) return NULL;
  x->num_ranks = num_ranks;
  x->num_messages = num_messages;
  x->num_nodes = num_nodes;
  x->num_sockets = num_sockets;
  memcpy(x->level_first, level_first, sizeof x->level_first);
  x->num_classes = level_first[NUM_LEVELS];
  const int64_t inside = level_first[BETWEEN_NODES], outside = x->num_classes - inside;
  reserve(x);
  x->node = copied_integers(node, num_ranks);
  x->socket = copied_integers(socket, num_ranks);
  x->src = copied_integers(src, num_messages);
  x->dst = copied_integers(dst, num_messages);
  x->bytes = copied_integers(size_bytes, num_messages);
  x->min_bytes = copied_integers(min_bytes, x->num_classes);
  x->latency_s = copied_reals(latency_s, x->num_classes);
  x->bandwidth[INSIDE] = copied_reals(inside_bytes_per_s, num_counts * inside);
  x->bandwidth[OUTSIDE] = copied_reals(outside_bytes_per_s, num_counts * outside);
  x->waits = malloc(((size_t)x->num_classes + 1) * sizeof *x->waits);
  if (!has_memory(x)) {
    eb_exchange_destroy(x);
    return NULL;
  }
  memcpy(x->waits, waits, (size_t)x->num_classes * sizeof *waits);
  list_by(dst, by_size, num_messages, num_ranks, x->in_first, x->in);
  list_by(src, NULL, num_messages, num_ranks, x->out_first, x->out);
  for (int64_t n = 0; n < num_nodes; n++) x->head[n] = -1;
  begin_change(x);
  for (int64_t rank = 0; rank < num_ranks; rank++) {
    enter_node(x, rank, node[rank], socket[rank]);
    reach_receiver(x, rank);
    reach(x->sender_at, x->senders, &x->num_senders, x->change, rank);
    for (int part = 0; part < NUM_PARTS; part++) reach_groups(x, rank, part);
  }
  for (int64_t m = 0; m < num_messages; m++) {
    x->class_of[m] = class_of(x, m);
    count_message(x, m, x->class_of[m], 1);
  }
  settle(x);
  return x;
}
