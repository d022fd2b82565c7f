/* Messages inside nodes by the staircase model: the N receivers of a group get BW(N) / N each, and a receiver's messages equal
 * parts of that.
 *
 * A pool is a class of a group, a lane a class of a receiver. What a pool has served each receiver since it was last empty, and
 * a lane each message, are two numbers; so a change of N or of the messages of a receiver moves nothing but these. */
#include <stdlib.h>

#include "flows.h"

bool eb_flow_queue_add(eb_flow_queue *queue, eb_flow flow) {
  if (queue->num == queue->capacity) {
    const uint32_t capacity = queue->capacity ? 2 * queue->capacity : 4;
    eb_flow *heap = realloc(queue->heap, capacity * sizeof *heap);
    if (!heap) return false;
    queue->heap = heap;
    queue->capacity = capacity;
  }
  uint32_t at = queue->num++;
  for (; at; at = (at - 1) / 2) {
    const eb_flow *above = &queue->heap[(at - 1) / 2];
    if (above->until_bytes < flow.until_bytes || (above->until_bytes == flow.until_bytes && above->message < flow.message)) break;
    queue->heap[at] = *above;
  }
  queue->heap[at] = flow;
  return true;
}

static bool is_less(const eb_flow *a, const eb_flow *b) {
  return a->until_bytes != b->until_bytes ? a->until_bytes < b->until_bytes : a->message < b->message;
}

uint32_t eb_flow_queue_take(eb_flow_queue *queue) {
  const uint32_t message = queue->heap[0].message;
  const eb_flow moved = queue->heap[--queue->num];
  uint32_t at = 0;
  for (;;) {
    uint32_t below = 2 * at + 1;
    if (below >= queue->num) break;
    if (below + 1 < queue->num && is_less(&queue->heap[below + 1], &queue->heap[below])) below++;
    if (!is_less(&queue->heap[below], &moved)) break;
    queue->heap[at] = queue->heap[below];
    at = below;
  }
  queue->heap[at] = moved;
  return message;
}

typedef struct {
  double served_bytes; /* to each receiver */
  double rate, updated_s;
  eb_timers lanes; /* of the receivers, by their places in the group: what must be served until one has a whole message */
} pool;

typedef struct {
  eb_flow_queue queue;
  double served_bytes; /* to each message */
  double pool_bytes;   /* what the pool had served at that moment */
} lane;

struct eb_inside {
  const eb_bandwidth *table;
  eb_timers *timers;
  int64_t num_ranks, num_groups;
  uint32_t *group, *place;         /* of each rank */
  uint32_t *first, *receiver;      /* the ranks of each group */
  uint32_t *num_active;            /* of each group: receivers with messages */
  uint32_t *num_messages;          /* of each receiver */
  pool *pools;                     /* [group][class] */
  lane *lanes;                     /* [rank][class] */
};

void eb_inside_destroy(eb_inside *inside) {
  if (!inside) return;
  const int64_t classes = inside->table->num_classes;
  for (int64_t k = 0; inside->pools && k < inside->num_groups * classes; k++) eb_timers_free(&inside->pools[k].lanes);
  for (int64_t k = 0; inside->lanes && k < inside->num_ranks * classes; k++) free(inside->lanes[k].queue.heap);
  free(inside->group);
  free(inside->place);
  free(inside->first);
  free(inside->receiver);
  free(inside->num_active);
  free(inside->num_messages);
  free(inside->pools);
  free(inside->lanes);
  free(inside);
}

uint32_t eb_inside_num_pools(const eb_inside *inside) { return (uint32_t)(inside->num_groups * inside->table->num_classes); }

eb_inside *eb_inside_create(int64_t num_ranks, const int64_t *group, int64_t num_groups, const eb_bandwidth *table,
                            eb_timers *timers) {
  eb_inside *inside = calloc(1, sizeof *inside);
  if (!inside) return NULL;
  *inside = (eb_inside){.table = table, .timers = timers, .num_ranks = num_ranks, .num_groups = num_groups};
  const size_t ranks = (size_t)num_ranks + 1, groups = (size_t)num_groups + 1, classes = (size_t)table->num_classes;
  inside->group = malloc(ranks * sizeof *inside->group);
  inside->place = malloc(ranks * sizeof *inside->place);
  inside->first = calloc(groups + 1, sizeof *inside->first);
  inside->receiver = malloc(ranks * sizeof *inside->receiver);
  inside->num_active = calloc(groups, sizeof *inside->num_active);
  inside->num_messages = calloc(ranks, sizeof *inside->num_messages);
  inside->pools = calloc(groups * classes, sizeof *inside->pools);
  inside->lanes = calloc(ranks * classes, sizeof *inside->lanes);
  const bool is_whole = inside->group && inside->place && inside->first && inside->receiver && inside->num_active &&
                        inside->num_messages && inside->pools && inside->lanes &&
                        eb_timers_extend(timers, eb_inside_num_pools(inside) + 1);
  if (!is_whole) {
    eb_inside_destroy(inside);
    return NULL;
  }
  for (int64_t rank = 0; rank < num_ranks; rank++) {
    inside->group[rank] = (uint32_t)group[rank];
    inside->place[rank] = inside->first[group[rank] + 1]++;
  }
  for (int64_t g = 0; g < num_groups; g++) inside->first[g + 1] += inside->first[g];
  for (int64_t rank = 0; rank < num_ranks; rank++)
    inside->receiver[inside->first[group[rank]] + inside->place[rank]] = (uint32_t)rank;
  return inside;
}

static lane *lane_of(const eb_inside *inside, uint32_t rank, uint32_t c) {
  return &inside->lanes[rank * inside->table->num_classes + c];
}

static pool *pool_of(const eb_inside *inside, uint32_t g, uint32_t c) { return &inside->pools[g * inside->table->num_classes + c]; }

/* Brings the pools of a group, and the lanes of a receiver, to the present. */
static void advance(eb_inside *inside, double now_s, uint32_t rank) {
  const uint32_t g = inside->group[rank], num = inside->num_messages[rank];
  for (uint32_t c = 0; c < inside->table->num_classes; c++) {
    pool *of = pool_of(inside, g, c);
    of->served_bytes = of->lanes.num ? of->served_bytes + of->rate * (now_s - of->updated_s) : 0;
    of->updated_s = now_s;
    lane *own = lane_of(inside, rank, c);
    if (own->queue.num) own->served_bytes += (of->served_bytes - own->pool_bytes) / num;
    else own->served_bytes = 0;
    own->pool_bytes = of->served_bytes;
  }
}

/* Sets the timers of a group after a change of one of its receivers. */
static void reschedule(eb_inside *inside, double now_s, uint32_t rank) {
  const uint32_t g = inside->group[rank], num = inside->num_active[g];
  for (uint32_t c = 0; c < inside->table->num_classes; c++) {
    pool *of = pool_of(inside, g, c);
    const lane *own = lane_of(inside, rank, c);
    if (own->queue.num)
      eb_timers_set(&of->lanes, inside->place[rank],
                    of->served_bytes + (own->queue.heap[0].until_bytes - own->served_bytes) * inside->num_messages[rank]);
    else if (of->lanes.capacity) eb_timers_clear(&of->lanes, inside->place[rank]);
    const uint32_t timer = g * (uint32_t)inside->table->num_classes + c;
    if (!of->lanes.num) {
      eb_timers_clear(inside->timers, timer);
      continue;
    }
    of->rate = eb_bandwidth_of(inside->table, num, c) / num;
    const double left_bytes = of->lanes.key[of->lanes.heap[0]] - of->served_bytes;
    eb_timers_set(inside->timers, timer, now_s + (left_bytes > 0 ? left_bytes / of->rate : 0));
  }
}

bool eb_inside_begin(eb_inside *inside, double now_s, uint32_t message, int64_t dst, uint32_t message_class, int64_t bytes) {
  const uint32_t rank = (uint32_t)dst, g = inside->group[rank];
  pool *of = pool_of(inside, g, message_class);
  lane *own = lane_of(inside, rank, message_class);
  advance(inside, now_s, rank);
  if (!eb_timers_extend(&of->lanes, inside->first[g + 1] - inside->first[g])) return false;
  if (!eb_flow_queue_add(&own->queue, (eb_flow){own->served_bytes + (double)bytes, message})) return false;
  if (inside->num_messages[rank]++ == 0) inside->num_active[g]++;
  reschedule(inside, now_s, rank);
  return true;
}

uint32_t eb_inside_end(eb_inside *inside, double now_s, uint32_t number) {
  const pool *of = &inside->pools[number];
  const uint32_t classes = (uint32_t)inside->table->num_classes, g = number / classes;
  const uint32_t rank = inside->receiver[inside->first[g] + of->lanes.heap[0]];
  advance(inside, now_s, rank);
  lane *own = lane_of(inside, rank, number % classes);
  own->served_bytes = own->queue.heap[0].until_bytes; /* but for rounding */
  const uint32_t message = eb_flow_queue_take(&own->queue);
  if (--inside->num_messages[rank] == 0) inside->num_active[g]--;
  reschedule(inside, now_s, rank);
  return message;
}
