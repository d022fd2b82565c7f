/* Max-min fair sharing as in fair.c, of messages that begin at any time.
 *
 * Messages of one class between the same two nodes are a bundle. When messages begin or end, the rates of all bundles through
 * their ends are settled, with what the others leave at the ends beyond these. An end beyond them is settled, too, where that
 * contradicts the rates there: it has more to give to those that it limits, or limits some more or less than before. Rates are
 * max-min fair if every bundle has an end that is full and where none has a higher level, so in the end all are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flows.h"

/* Levels that differ by less are the same but for rounding. */
static const double ROUNDING = 1e-11;

typedef struct {
  eb_flow_queue queue;
  double served_bytes; /* to each message */
  double rate, updated_s;
  double weight, new_level; /* of each message; new_level < 0: rising */
  uint32_t end[2], place[2]; /* sending and receiving; in the lists of these */
  uint32_t message_class;
  uint32_t settling; /* the last settling that it was part of */
} bundle;

typedef struct {
  uint32_t *bundles; /* with messages */
  uint32_t num, capacity;
  uint32_t num_processes;         /* with messages */
  double bandwidth;               /* of the end, the mean of that of its messages */
  double level;                   /* at which it is full; infinity if it limits no bundle */
  double left, weight, new_level; /* in the present settling */
  uint32_t rising;
  uint32_t settling, bordering; /* the last that it was part of, and next to */
  bool is_changed;
} node_end;

struct eb_between {
  const eb_bandwidth *table;
  eb_timers *timers;
  uint32_t first_timer;
  int64_t num_ranks, num_nodes;
  uint32_t *node;
  uint32_t *num_sent, *num_received; /* of each rank: messages under way */
  node_end *ends;                    /* the sending ones, then the receiving ones */
  uint32_t *num_of_class;            /* [end][class] messages under way */
  bundle *bundles;
  uint32_t num_bundles, bundle_capacity;
  uint32_t *slots; /* a hash table of bundles, 0: empty, else a bundle + 1 */
  uint32_t num_slots;
  uint32_t *changed, *inner, *border, *members; /* ends that have changed; of the present settling: ends, and bundles */
  uint32_t num_changed, num_inner, num_border, num_members, member_capacity;
  eb_timers levels; /* of the ends of the present settling */
  uint32_t settling;
};

void eb_between_destroy(eb_between *between) {
  if (!between) return;
  for (int64_t e = 0; between->ends && e < 2 * between->num_nodes; e++) free(between->ends[e].bundles);
  for (uint32_t b = 0; b < between->num_bundles; b++) free(between->bundles[b].queue.heap);
  free(between->node);
  free(between->num_sent);
  free(between->num_received);
  free(between->ends);
  free(between->num_of_class);
  free(between->bundles);
  free(between->slots);
  free(between->changed);
  free(between->inner);
  free(between->border);
  free(between->members);
  eb_timers_free(&between->levels);
  free(between);
}

eb_between *eb_between_create(int64_t num_ranks, const int64_t *node, int64_t num_nodes, const eb_bandwidth *table,
                              eb_timers *timers, uint32_t first_timer) {
  eb_between *between = calloc(1, sizeof *between);
  if (!between) return NULL;
  *between = (eb_between){.table = table,
                          .timers = timers,
                          .first_timer = first_timer,
                          .num_ranks = num_ranks,
                          .num_nodes = num_nodes,
                          .num_slots = 64};
  const size_t ranks = (size_t)num_ranks + 1, ends = 2 * (size_t)num_nodes + 1;
  between->node = malloc(ranks * sizeof *between->node);
  between->num_sent = calloc(ranks, sizeof *between->num_sent);
  between->num_received = calloc(ranks, sizeof *between->num_received);
  between->ends = calloc(ends, sizeof *between->ends);
  between->num_of_class = calloc(ends * (size_t)table->num_classes, sizeof *between->num_of_class);
  between->slots = calloc(between->num_slots, sizeof *between->slots);
  between->changed = malloc(ends * sizeof *between->changed);
  between->inner = malloc(ends * sizeof *between->inner);
  between->border = malloc(ends * sizeof *between->border);
  const bool is_whole = between->node && between->num_sent && between->num_received && between->ends && between->num_of_class &&
                        between->slots && between->changed && between->inner && between->border &&
                        eb_timers_extend(&between->levels, (uint32_t)ends);
  if (!is_whole) {
    eb_between_destroy(between);
    return NULL;
  }
  for (int64_t rank = 0; rank < num_ranks; rank++) between->node[rank] = (uint32_t)node[rank];
  for (size_t e = 0; e < ends; e++) between->ends[e].level = INFINITY;
  return between;
}

static uint64_t hash_of(uint32_t src_end, uint32_t dst_end, uint32_t message_class) {
  uint64_t h = ((uint64_t)src_end << 32 | dst_end) + 0x9e3779b97f4a7c15u * (message_class + 1);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

static uint32_t *slot_of(eb_between *between, uint32_t src_end, uint32_t dst_end, uint32_t message_class) {
  for (uint64_t h = hash_of(src_end, dst_end, message_class);; h++) {
    uint32_t *slot = &between->slots[h & (between->num_slots - 1)];
    if (!*slot) return slot;
    const bundle *here = &between->bundles[*slot - 1];
    if (here->end[0] == src_end && here->end[1] == dst_end && here->message_class == message_class) return slot;
  }
}

static bool extend_slots(eb_between *between) {
  free(between->slots);
  between->num_slots *= 2;
  between->slots = calloc(between->num_slots, sizeof *between->slots);
  for (uint32_t b = 0; between->slots && b < between->num_bundles; b++) {
    const bundle *of = &between->bundles[b];
    *slot_of(between, of->end[0], of->end[1], of->message_class) = b + 1;
  }
  return between->slots != NULL;
}

/* The bundle of a pair of ends and a class, which is made with its first message; UINT32_MAX if memory is short. */
static uint32_t bundle_of(eb_between *between, uint32_t src_end, uint32_t dst_end, uint32_t message_class) {
  uint32_t *slot = slot_of(between, src_end, dst_end, message_class);
  if (*slot) return *slot - 1;
  if (between->num_bundles == between->bundle_capacity) {
    const uint32_t capacity = between->bundle_capacity ? 2 * between->bundle_capacity : 64;
    bundle *bundles = realloc(between->bundles, capacity * sizeof *bundles);
    if (!bundles) return UINT32_MAX;
    between->bundles = bundles;
    between->bundle_capacity = capacity;
  }
  const uint32_t number = between->num_bundles;
  if (!eb_timers_extend(between->timers, between->first_timer + number + 1)) return UINT32_MAX;
  between->bundles[number] = (bundle){.end = {src_end, dst_end}, .message_class = message_class};
  *slot = number + 1;
  between->num_bundles++;
  if (2 * (uint64_t)between->num_bundles > between->num_slots && !extend_slots(between)) return UINT32_MAX;
  return number;
}

static void mark_changed(eb_between *between, uint32_t e) {
  node_end *at = &between->ends[e];
  if (at->is_changed) return;
  at->is_changed = true;
  between->changed[between->num_changed++] = e;
}

static bool attach(eb_between *between, uint32_t number, int side) {
  bundle *of = &between->bundles[number];
  node_end *at = &between->ends[of->end[side]];
  if (at->num == at->capacity) {
    const uint32_t capacity = at->capacity ? 2 * at->capacity : 4;
    uint32_t *bundles = realloc(at->bundles, capacity * sizeof *bundles);
    if (!bundles) return false;
    at->bundles = bundles;
    at->capacity = capacity;
  }
  of->place[side] = at->num;
  at->bundles[at->num++] = number;
  return true;
}

static void detach(eb_between *between, uint32_t number, int side) {
  const bundle *of = &between->bundles[number];
  node_end *at = &between->ends[of->end[side]];
  const uint32_t last = at->bundles[--at->num];
  at->bundles[of->place[side]] = last;
  between->bundles[last].place[side] = of->place[side];
}

static void advance(bundle *of, double now_s) {
  of->served_bytes += of->rate * (now_s - of->updated_s);
  of->updated_s = now_s;
}

static void set_timer(eb_between *between, uint32_t number) {
  const bundle *of = &between->bundles[number];
  const double left_bytes = of->queue.heap[0].until_bytes - of->served_bytes;
  eb_timers_set(between->timers, between->first_timer + number, of->updated_s + (left_bytes > 0 ? left_bytes / of->rate : 0));
}

static uint32_t *count_of(eb_between *between, uint32_t e, uint32_t message_class) {
  return &between->num_of_class[e * between->table->num_classes + message_class];
}

/* The ends at which a message needs to be known, by its bundle and its ranks. */
static void count(eb_between *between, const bundle *of, int64_t src, int64_t dst, int by) {
  uint32_t *const of_rank[2] = {&between->num_sent[src], &between->num_received[dst]};
  for (int side = 0; side < 2; side++) {
    node_end *at = &between->ends[of->end[side]];
    if (by > 0 && (*of_rank[side])++ == 0) at->num_processes++;
    if (by < 0 && --(*of_rank[side]) == 0) at->num_processes--;
    *count_of(between, of->end[side], of->message_class) += (uint32_t)by;
    mark_changed(between, of->end[side]);
  }
}

bool eb_between_begin(eb_between *between, double now_s, uint32_t message, int64_t src, int64_t dst, uint32_t message_class,
                      int64_t bytes) {
  const uint32_t src_end = between->node[src], dst_end = (uint32_t)between->num_nodes + between->node[dst];
  const uint32_t number = bundle_of(between, src_end, dst_end, message_class);
  if (number == UINT32_MAX) return false;
  bundle *of = &between->bundles[number];
  if (of->queue.num) {
    advance(of, now_s);
  } else {
    of->served_bytes = of->rate = 0;
    of->updated_s = now_s;
    if (!attach(between, number, 0) || !attach(between, number, 1)) return false;
  }
  count(between, of, src, dst, 1);
  if (!eb_flow_queue_add(&of->queue, (eb_flow){of->served_bytes + (double)bytes, message})) return false;
  if (of->rate > 0) set_timer(between, number);
  return true;
}

uint32_t eb_between_next(const eb_between *between, uint32_t timer) {
  return between->bundles[timer - between->first_timer].queue.heap[0].message;
}

void eb_between_end(eb_between *between, double now_s, uint32_t timer, int64_t src, int64_t dst) {
  const uint32_t number = timer - between->first_timer;
  bundle *of = &between->bundles[number];
  advance(of, now_s);
  of->served_bytes = of->queue.heap[0].until_bytes; /* but for rounding */
  eb_flow_queue_take(&of->queue);
  count(between, of, src, dst, -1);
  if (of->queue.num) {
    set_timer(between, number);
  } else {
    eb_timers_clear(between->timers, timer);
    for (int side = 0; side < 2; side++) detach(between, number, side);
  }
}

bool eb_between_is_changed(const eb_between *between) { return between->num_changed > 0; }

/* The bandwidth of an end is the mean over its messages; a message's weight is its own at the receiving end as a multiple. */
static void find_bandwidth(eb_between *between, uint32_t e) {
  node_end *at = &between->ends[e];
  double sum = 0, num = 0;
  for (uint32_t c = 0; c < between->table->num_classes; c++) {
    const uint32_t of_class = *count_of(between, e, c);
    if (!of_class) continue;
    sum += of_class * eb_bandwidth_of(between->table, at->num_processes, c);
    num += of_class;
  }
  at->bandwidth = num > 0 ? sum / num : 0;
  if (!at->num) at->level = INFINITY;
  if (e < between->num_nodes) return;
  for (uint32_t i = 0; i < at->num; i++) {
    bundle *of = &between->bundles[at->bundles[i]];
    of->weight = eb_bandwidth_of(between->table, at->num_processes, of->message_class) / at->bandwidth;
  }
}

/* All bundles of the inner ends are settled. */
static bool find_members(eb_between *between) {
  between->num_members = 0;
  for (uint32_t i = 0; i < between->num_inner; i++) {
    const node_end *at = &between->ends[between->inner[i]];
    for (uint32_t k = 0; k < at->num; k++) {
      const uint32_t number = at->bundles[k];
      bundle *of = &between->bundles[number];
      if (of->settling == between->settling) continue;
      of->settling = between->settling;
      of->new_level = -1;
      if (between->num_members == between->member_capacity) {
        const uint32_t capacity = between->member_capacity ? 2 * between->member_capacity : 64;
        uint32_t *members = realloc(between->members, capacity * sizeof *members);
        if (!members) return false;
        between->members = members;
        between->member_capacity = capacity;
      }
      between->members[between->num_members++] = number;
    }
  }
  return true;
}

/* What an end has for the members, and how many there are: the others keep what they have. */
static void open_end(eb_between *between, uint32_t e) {
  node_end *at = &between->ends[e];
  at->left = at->bandwidth;
  at->weight = 0;
  at->rising = 0;
  at->new_level = INFINITY;
  for (uint32_t k = 0; k < at->num; k++) {
    const bundle *of = &between->bundles[at->bundles[k]];
    if (of->settling == between->settling) {
      at->weight += of->weight * of->queue.num;
      at->rising++;
    } else {
      at->left -= of->rate * of->queue.num;
    }
  }
  if (at->rising) eb_timers_set(&between->levels, e, fmax(at->left, 0) / at->weight);
}

static void open_ends(eb_between *between) {
  between->num_border = 0;
  for (uint32_t i = 0; i < between->num_inner; i++) open_end(between, between->inner[i]);
  for (uint32_t i = 0; i < between->num_members; i++) {
    const bundle *of = &between->bundles[between->members[i]];
    for (int side = 0; side < 2; side++) {
      node_end *at = &between->ends[of->end[side]];
      if (at->settling == between->settling || at->bordering == between->settling) continue;
      at->bordering = between->settling;
      between->border[between->num_border++] = of->end[side];
      open_end(between, of->end[side]);
    }
  }
}

/* The members of an end that is full keep their level. */
static void fix(eb_between *between, uint32_t e, double level) {
  node_end *at = &between->ends[e];
  at->new_level = level;
  for (uint32_t k = 0; at->rising; k++) {
    bundle *of = &between->bundles[at->bundles[k]];
    if (of->settling != between->settling || of->new_level >= 0) continue;
    of->new_level = level;
    const double weight = of->weight * of->queue.num;
    for (int side = 0; side < 2; side++) {
      node_end *through = &between->ends[of->end[side]];
      through->left -= weight * level;
      through->weight -= weight;
      through->rising--;
    }
  }
}

/* As in fair.c: the levels in the heap are at most too low. */
static void fill(eb_between *between) {
  while (between->levels.num) {
    const uint32_t e = between->levels.heap[0];
    const node_end *at = &between->ends[e];
    const double level = at->rising ? fmax(at->left, 0) / at->weight : 0;
    if (level > between->levels.key[e]) {
      eb_timers_set(&between->levels, e, level);
      continue;
    }
    eb_timers_clear(&between->levels, e);
    if (at->rising) fix(between, e, between->levels.key[e]);
  }
}

/* Whether the new rates of members contradict those of other bundles at an end next to those settled. */
static bool contradicts(const eb_between *between, const node_end *at) {
  if (isinf(at->level)) return !isinf(at->new_level);
  if (!isinf(at->new_level)) return fabs(at->new_level - at->level) > ROUNDING * at->level;
  if (at->left > ROUNDING * at->bandwidth) return true;
  for (uint32_t k = 0; k < at->num; k++) {
    const bundle *of = &between->bundles[at->bundles[k]];
    if (of->settling == between->settling && of->new_level > at->level * (1 + ROUNDING)) return true;
  }
  return false;
}

static void include(eb_between *between, uint32_t e) {
  between->ends[e].settling = between->settling;
  between->inner[between->num_inner++] = e;
}

bool eb_between_settle(eb_between *between, double now_s) {
  between->num_inner = 0;
  for (uint32_t i = 0; i < between->num_changed; i++) {
    const uint32_t e = between->changed[i];
    between->ends[e].is_changed = false;
    find_bandwidth(between, e);
    between->inner[between->num_inner++] = e;
  }
  between->num_changed = 0;
  for (bool is_growing = true; is_growing;) {
    between->settling++;
    is_growing = false;
    for (uint32_t i = 0; i < between->num_inner; i++) between->ends[between->inner[i]].settling = between->settling;
    if (!find_members(between)) return false;
    open_ends(between);
    fill(between);
    for (uint32_t i = 0; i < between->num_border; i++) {
      const uint32_t e = between->border[i];
      if (!contradicts(between, &between->ends[e])) continue;
      include(between, e);
      is_growing = true;
    }
  }
  for (uint32_t i = 0; i < between->num_inner; i++)
    between->ends[between->inner[i]].level = between->ends[between->inner[i]].new_level;
  for (uint32_t i = 0; i < between->num_members; i++) {
    bundle *of = &between->bundles[between->members[i]];
    const double rate = of->weight * of->new_level;
    if (rate == of->rate) continue;
    advance(of, now_s);
    of->rate = rate;
    set_timer(between, between->members[i]);
  }
  return true;
}
