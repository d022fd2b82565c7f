/* Messages under way that share bandwidth, and may begin at any time: those inside nodes, and those between nodes.
 *
 * What is shared changes only where messages begin or end. When a message is complete is known by a timer, of which each set of
 * messages that move alike has one. Functions that return bool return false if memory is short. */
#ifndef EARLYBIRD_MODELS_FLOWS_H
#define EARLYBIRD_MODELS_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "timers.h"

/* The messages of a set that move alike: each is complete when the set has served as many bytes as its key. */
typedef struct {
  double until_bytes;
  uint32_t message;
} eb_flow;

typedef struct {
  eb_flow *heap; /* the smallest key first, of equal keys the smaller message */
  uint32_t num, capacity;
} eb_flow_queue;

bool eb_flow_queue_add(eb_flow_queue *queue, eb_flow flow);
uint32_t eb_flow_queue_take(eb_flow_queue *queue);

/* BW(n) of a class; beyond the last n it remains. */
typedef struct {
  int64_t num_counts, num_classes;
  const double *bytes_per_s; /* [n - 1][class] */
} eb_bandwidth;

static inline double eb_bandwidth_of(const eb_bandwidth *table, int64_t n, uint32_t message_class) {
  return table->bytes_per_s[((n < table->num_counts ? n : table->num_counts) - 1) * table->num_classes + message_class];
}

/* Inside nodes, where the receivers of a group share its bandwidth: the timers are the indices 0 .. num_pools - 1. */
typedef struct eb_inside eb_inside;

eb_inside *eb_inside_create(int64_t num_ranks, const int64_t *group, int64_t num_groups, const eb_bandwidth *table,
                            eb_timers *timers);
void eb_inside_destroy(eb_inside *inside);
uint32_t eb_inside_num_pools(const eb_inside *inside);
bool eb_inside_begin(eb_inside *inside, double now_s, uint32_t message, int64_t dst, uint32_t message_class, int64_t bytes);
/* Returns the message that is complete when the timer of a pool has expired. */
uint32_t eb_inside_end(eb_inside *inside, double now_s, uint32_t pool);

/* Between nodes, where messages share both ends as in fair.c: the timers are the indices from first_timer on. */
typedef struct eb_between eb_between;

eb_between *eb_between_create(int64_t num_ranks, const int64_t *node, int64_t num_nodes, const eb_bandwidth *table,
                              eb_timers *timers, uint32_t first_timer);
void eb_between_destroy(eb_between *between);
bool eb_between_begin(eb_between *between, double now_s, uint32_t message, int64_t src, int64_t dst, uint32_t message_class,
                      int64_t bytes);
/* The message that is complete when a timer has expired, and its end. */
uint32_t eb_between_next(const eb_between *between, uint32_t timer);
void eb_between_end(eb_between *between, double now_s, uint32_t timer, int64_t src, int64_t dst);
/* Whether messages have begun or ended since the rates were settled. */
bool eb_between_is_changed(const eb_between *between);
/* Settles the rates at the ends that have changed, and wherever that changes another rate. */
bool eb_between_settle(eb_between *between, double now_s);

#endif
