/* Checks programs before they are simulated: a wrong index must not reach memory that is not theirs. */
#include "program_check.h"

#include <math.h>
#include <stdlib.h>

/* Counts and indices fit into 32 bits where the simulation keeps them so. */
static const int64_t MAX_INDEX = INT32_MAX;

typedef struct {
  const eb_program *program;
  const eb_network *network;
  int64_t *place;
  const char **reason;
} check;

static bool refuse(const check *c, int64_t place, const char *reason) {
  *c->place = place;
  *c->reason = reason;
  return false;
}

static bool is_index(int64_t value, int64_t num) { return value >= 0 && value < num; }

static bool is_time(double value) { return value >= 0 && value <= 1e12; }

static bool check_counts(const check *c) {
  const eb_program *p = c->program;
  const int64_t counts[] = {p->num_ranks,           p->num_threads,          p->num_operations,     p->num_sets,
                            p->num_set_requests,    p->num_messages,         p->num_collectives,    c->network->num_nodes,
                            c->network->num_groups, c->network->num_classes, c->network->num_counts};
  for (int k = 0; k < (int)(sizeof counts / sizeof *counts); k++)
    if (counts[k] < 0 || counts[k] >= MAX_INDEX) return refuse(c, k, "a count is negative or too large");
  if (p->num_ranks == 0 || p->num_threads == 0) return refuse(c, 0, "there is no rank or no thread");
  if (c->network->num_classes == 0 || c->network->num_counts == 0) return refuse(c, 0, "there is no class or no bandwidth");
  const int64_t lanes = p->num_ranks > c->network->num_groups ? p->num_ranks : c->network->num_groups;
  if (lanes > MAX_INDEX / c->network->num_classes) return refuse(c, 0, "there are too many ranks and classes");
  if (2 * c->network->num_nodes > MAX_INDEX / c->network->num_classes) return refuse(c, 0, "there are too many nodes and classes");
  return true;
}

static bool check_network(const check *c) {
  const eb_network *n = c->network;
  for (int64_t rank = 0; rank < c->program->num_ranks; rank++) {
    if (!is_index(n->node[rank], n->num_nodes)) return refuse(c, rank, "the node of a rank is not there");
    if (!is_index(n->group[rank], n->num_groups)) return refuse(c, rank, "the group of a rank is not there");
  }
  for (int64_t k = 0; k < n->num_counts * n->num_classes; k++)
    if (!(n->bandwidth_bytes_per_s[k] > 0 && n->bandwidth_bytes_per_s[k] <= 1e18))
      return refuse(c, k, "a bandwidth is not positive, or too large");
  for (int64_t k = 0; k < n->num_classes; k++)
    if (!is_time(n->latency_s[k]) || !is_time(n->receive_s[k])) return refuse(c, k, "a latency is negative or too large");
  return true;
}

static bool check_ranges(const check *c) {
  const eb_program *p = c->program;
  if (p->first[0] != 0 || p->first[p->num_threads] != p->num_operations)
    return refuse(c, 0, "threads have other operations than there are");
  for (int64_t t = 0; t < p->num_threads; t++) {
    if (p->first[t + 1] < p->first[t]) return refuse(c, t, "the operations of a thread end before they begin");
    if (!is_index(p->thread_rank[t], p->num_ranks)) return refuse(c, t, "the rank of a thread is not there");
    if (t && p->thread_rank[t] < p->thread_rank[t - 1]) return refuse(c, t, "threads are not in the order of their ranks");
  }
  if (p->set_first[0] != 0 || p->set_first[p->num_sets] != p->num_set_requests)
    return refuse(c, 0, "sets have other requests than there are");
  for (int64_t k = 0; k < p->num_sets; k++)
    if (p->set_first[k + 1] < p->set_first[k]) return refuse(c, k, "a set ends before it begins");
  for (int64_t m = 0; m < p->num_messages; m++) {
    if (p->message_bytes[m] < 0 || p->message_bytes[m] > (int64_t)1 << 60)
      return refuse(c, m, "the bytes of a message are negative or too many");
    if (!is_index(p->message_class[m], c->network->num_classes)) return refuse(c, m, "the class of a message is not there");
  }
  for (int64_t k = 0; k < p->num_collectives; k++) {
    if (p->collective_semantics[k] >= EB_NUM_SEMANTICS) return refuse(c, k, "who waits for whom in a collective is not known");
    const int64_t num_roots = p->collective_semantics[k] == EB_WAIT_FOR_THREAD ? p->num_threads : p->num_ranks;
    if (!is_index(p->collective_root[k], num_roots)) return refuse(c, k, "the root of a collective is not there");
  }
  return true;
}

/* Each set belongs to one wait, and its requests are those of the rank of the wait; all are in one EB_WAIT_ALL at most. */
static bool check_set(const check *c, int64_t k, const int32_t *rank_of, uint8_t *marks) {
  const eb_program *p = c->program;
  const int64_t set = p->argument[k];
  for (int64_t i = p->set_first[set]; i < p->set_first[set + 1]; i++) {
    const int64_t request = p->set_requests[i];
    if (!is_index(request, p->num_operations)) return refuse(c, i, "a request is not there");
    const uint8_t kind = p->operation[request];
    if (kind != EB_SEND && kind != EB_RECEIVE && kind != EB_ENTER)
      return refuse(c, i, "a wait is for an operation that posts no request");
    if (rank_of[request] != rank_of[k]) return refuse(c, i, "a wait is for a request of another rank");
    if (p->operation[k] == EB_WAIT_ALL && marks[request]++) return refuse(c, i, "two waits are for one request");
  }
  return true;
}

/* Threads and ranks enter collectives in ascending order, since the operations are in that order. */
static bool check_entry(const check *c, int64_t k, int64_t thread, int32_t *entered) {
  const int64_t collective = c->program->argument[k];
  if (!is_index(collective, c->program->num_collectives)) return refuse(c, k, "the collective of an operation is not there");
  const bool is_of_threads = c->program->collective_semantics[collective] >= EB_THREADS_WAIT;
  const int64_t who = is_of_threads ? thread : c->program->thread_rank[thread];
  if (entered[collective] >= who)
    return refuse(c, k, is_of_threads ? "a thread enters a collective twice" : "a rank enters a collective twice");
  entered[collective] = (int32_t)who;
  return true;
}

static bool check_operations(const check *c, int32_t *rank_of, uint8_t *marks, uint8_t *ends, uint8_t *used_sets,
                             int32_t *entered) {
  const eb_program *p = c->program;
  for (int64_t t = 0; t < p->num_threads; t++)
    for (int64_t k = p->first[t]; k < p->first[t + 1]; k++) rank_of[k] = (int32_t)p->thread_rank[t];
  for (int64_t k = 0; k < p->num_collectives; k++) entered[k] = -1;
  int64_t thread = 0;
  for (int64_t k = 0; k < p->num_operations; k++) {
    while (k >= p->first[thread + 1]) thread++;
    const uint8_t kind = p->operation[k];
    if (kind >= EB_NUM_OPERATIONS) return refuse(c, k, "the kind of an operation is not known");
    if (!is_time(p->operation_s[k])) return refuse(c, k, "the time of an operation is negative or too large");
    const int64_t argument = p->argument[k];
    if (kind == EB_SEND || kind == EB_RECEIVE) {
      if (!is_index(argument, p->num_messages)) return refuse(c, k, "the message of an operation is not there");
      if (ends[argument] & kind) return refuse(c, k, kind == EB_SEND ? "a message is sent twice" : "a message is received twice");
      ends[argument] |= kind;
    } else if (kind == EB_WAIT_ALL || kind == EB_WAIT_ANY) {
      if (!is_index(argument, p->num_sets)) return refuse(c, k, "the set of a wait is not there");
      if (used_sets[argument]++) return refuse(c, k, "two waits have one set");
      if (!check_set(c, k, rank_of, marks)) return false;
    } else if (kind == EB_ENTER && !check_entry(c, k, thread, entered)) {
      return false;
    }
  }
  for (int64_t m = 0; m < p->num_messages; m++)
    if (ends[m] != (EB_SEND | EB_RECEIVE)) return refuse(c, m, "a message is not sent, or not received");
  return true;
}

int eb_program_check(const eb_program *program, const eb_network *network, int64_t *place, const char **reason) {
  const check c = {program, network, place, reason};
  if (!check_counts(&c) || !check_network(&c) || !check_ranges(&c)) return EB_BAD_PROGRAM;
  const size_t operations = (size_t)program->num_operations + 1;
  int32_t *rank_of = malloc(operations * sizeof *rank_of);
  int32_t *entered = malloc(((size_t)program->num_collectives + 1) * sizeof *entered);
  uint8_t *marks = calloc(operations, 1), *ends = calloc((size_t)program->num_messages + 1, 1);
  uint8_t *used_sets = calloc((size_t)program->num_sets + 1, 1);
  int outcome = -1;
  if (rank_of && entered && marks && ends && used_sets)
    outcome = check_operations(&c, rank_of, marks, ends, used_sets, entered) ? 0 : EB_BAD_PROGRAM;
  free(rank_of);
  free(entered);
  free(marks);
  free(ends);
  free(used_sets);
  return outcome;
}
