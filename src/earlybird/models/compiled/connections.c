/* Finds the connections of an exchange: the messages from one rank to another follow each other on one. */
#include "connections.h"

#include <stdlib.h>
#include <string.h>

void eb_connections_destroy(eb_connections *all) {
  if (!all) return;
  free(all->group);
  free(all->posted);
  free(all->first_posted);
  free(all->connection_of);
  free(all->connections);
  free(all->message);
  free(all->end_byte);
  free(all);
}

/* The messages by sender, in the order given. */
typedef struct {
  uint32_t *first; /* of each rank, and their end */
  uint32_t *place; /* NULL if they are given so */
} by_sender;

static bool sort_by_sender(const eb_connections *all, by_sender *by) {
  by->first = calloc((size_t)all->num_ranks + 1, sizeof *by->first);
  if (!by->first) return false;
  bool is_sorted = true;
  for (int64_t i = 0; i < all->num_messages; i++) {
    by->first[all->src[i] + 1]++;
    is_sorted &= i == 0 || all->src[i - 1] <= all->src[i];
  }
  for (int64_t rank = 0; rank < all->num_ranks; rank++) by->first[rank + 1] += by->first[rank];
  if (is_sorted) return true;
  by->place = malloc((size_t)all->num_messages * sizeof *by->place);
  if (!by->place) return false;
  for (int64_t i = 0; i < all->num_messages; i++) by->place[by->first[all->src[i]]++] = (uint32_t)i;
  for (int64_t rank = all->num_ranks; rank > 0; rank--) by->first[rank] = by->first[rank - 1];
  by->first[0] = 0;
  return true;
}

/* Sorts the messages of each group as they are posted: the k-th ones of all its ranks come before any (k+1)-th one. */
static bool sort_by_posting(eb_connections *all, const uint32_t *first) {
  const int64_t groups = all->num_groups;
  uint32_t *num_turns = calloc((size_t)groups + 1, sizeof *num_turns);
  uint32_t *num_posted = calloc((size_t)all->num_ranks + 1, sizeof *num_posted);
  uint32_t *turn = NULL; /* of each group the turns of its ranks: how many messages are before, at first how many it has */
  int64_t num = 0;
  if (num_turns && num_posted) {
    for (int64_t rank = 0; rank < all->num_ranks; rank++) {
      uint32_t *most = &num_turns[all->group[rank]];
      if (first[rank + 1] - first[rank] > *most) *most = first[rank + 1] - first[rank];
    }
    for (int64_t g = 0; g < groups; g++) { /* at most a turn for each message */
      const uint32_t own = num_turns[g];
      num_turns[g] = (uint32_t)num;
      num += own;
    }
    turn = calloc((size_t)num + 1, sizeof *turn);
  }
  if (turn) {
    for (int64_t rank = 0; rank < all->num_ranks; rank++)
      for (uint32_t k = 0; k < first[rank + 1] - first[rank]; k++) turn[num_turns[all->group[rank]] + k]++;
    uint32_t before = 0;
    for (int64_t g = 0, t = 0; g < groups; g++) {
      all->first_posted[g] = before;
      for (const int64_t end = g + 1 < groups ? num_turns[g + 1] : num; t < end; t++) {
        const uint32_t own = turn[t];
        turn[t] = before;
        before += own;
      }
    }
    all->first_posted[groups] = before;
    for (int64_t m = 0; m < all->num_messages; m++) {
      const uint32_t rank = all->src[m];
      all->posted[turn[num_turns[all->group[rank]] + num_posted[rank]++]++] = (uint32_t)m;
    }
  }
  const bool done = turn != NULL;
  free(num_turns);
  free(num_posted);
  free(turn);
  return done;
}

static bool is_short(const eb_connections *all, uint32_t message, const uint32_t *num_to) {
  const int64_t bytes = all->size_bytes[message];
  return num_to[all->dst[message]] == 1 && bytes > 0 && bytes <= all->chunk_bytes;
}

static uint32_t message_at(const by_sender *by, uint32_t k) { return by->place ? by->place[k] : k; }

/* Counts the messages of a rank to each other one, or sets these counts back. */
static void count_to(const eb_connections *all, const by_sender *by, int64_t rank, uint32_t *num_to, bool is_back) {
  for (uint32_t k = by->first[rank]; k < by->first[rank + 1]; k++) {
    uint32_t *num = &num_to[all->dst[message_at(by, k)]];
    *num = is_back ? 0 : *num + 1;
  }
}

static int64_t count_long(const eb_connections *all, const by_sender *by, uint32_t *num_to) {
  int64_t num = 0;
  for (int64_t rank = 0; rank < all->num_ranks; rank++) {
    count_to(all, by, rank, num_to, false);
    for (uint32_t k = by->first[rank]; k < by->first[rank + 1]; k++) num += !is_short(all, message_at(by, k), num_to);
    count_to(all, by, rank, num_to, true);
  }
  return num;
}

/* The connections of a rank that are not short; number[dst] is one more than that of its latest one. */
static void connect(eb_connections *all, const by_sender *by, int64_t rank, uint32_t *num_to, uint32_t *number,
                    uint32_t *num_connected) {
  count_to(all, by, rank, num_to, false);
  const int64_t before = all->num_connections;
  for (uint32_t place = by->first[rank]; place < by->first[rank + 1]; place++) {
    const uint32_t m = message_at(by, place), dst = all->dst[m];
    if (is_short(all, m, num_to)) continue;
    if (number[dst] <= before) {
      all->connections[all->num_connections++] = (eb_connection){
          .first = *num_connected, .end = *num_connected, .src = (uint32_t)rank, .dst = dst};
      *num_connected += num_to[dst];
      number[dst] = (uint32_t)all->num_connections;
    }
    eb_connection *of = &all->connections[number[dst] - 1];
    const uint32_t k = of->end++;
    all->connection_of[m] = number[dst] - 1;
    all->message[k] = m;
    all->end_byte[k] = (k == of->first ? 0 : all->end_byte[k - 1]) + all->size_bytes[m];
  }
  count_to(all, by, rank, num_to, true);
}

static bool find_connections(eb_connections *all, const by_sender *by) {
  uint32_t *num_to = calloc((size_t)all->num_ranks + 1, sizeof *num_to);
  uint32_t *number = calloc((size_t)all->num_ranks + 1, sizeof *number);
  const int64_t num_long = num_to && number ? count_long(all, by, num_to) : 0;
  bool done = num_to && number;
  if (num_long > 0) {
    const size_t num = (size_t)num_long;
    all->connection_of = malloc((size_t)all->num_messages * sizeof *all->connection_of);
    all->connections = malloc(num * sizeof *all->connections);
    all->message = malloc(num * sizeof *all->message);
    all->end_byte = malloc(num * sizeof *all->end_byte);
    done = all->connection_of && all->connections && all->message && all->end_byte;
    if (done) memset(all->connection_of, 0xff, (size_t)all->num_messages * sizeof *all->connection_of); /* EB_SHORT */
    uint32_t num_connected = 0;
    for (int64_t rank = 0; done && rank < all->num_ranks; rank++) connect(all, by, rank, num_to, number, &num_connected);
  }
  free(num_to);
  free(number);
  return done;
}

eb_connections *eb_connections_create(int64_t num_messages, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                                      const uint16_t *message_class, int64_t num_ranks, const int64_t *group, int64_t chunk_bytes) {
  eb_connections *all = calloc(1, sizeof *all);
  if (!all) return NULL;
  *all = (eb_connections){.num_messages = num_messages,
                          .num_ranks = num_ranks,
                          .chunk_bytes = chunk_bytes,
                          .src = src,
                          .dst = dst,
                          .size_bytes = size_bytes,
                          .message_class = message_class};
  for (int64_t rank = 0; rank < num_ranks; rank++)
    if (group[rank] >= all->num_groups) all->num_groups = group[rank] + 1;
  all->group = malloc(((size_t)num_ranks + 1) * sizeof *all->group);
  all->posted = malloc(((size_t)num_messages + 1) * sizeof *all->posted);
  all->first_posted = calloc((size_t)all->num_groups + 1, sizeof *all->first_posted);
  by_sender by = {0};
  bool done = all->group && all->posted && all->first_posted;
  if (done) {
    for (int64_t rank = 0; rank < num_ranks; rank++) all->group[rank] = (uint32_t)group[rank];
    done = sort_by_sender(all, &by) && sort_by_posting(all, by.first) && find_connections(all, &by);
  }
  free(by.first);
  free(by.place);
  if (done) return all;
  eb_connections_destroy(all);
  return NULL;
}
