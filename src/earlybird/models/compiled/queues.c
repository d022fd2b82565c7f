/* Messages through first-come-first-served queues: every ordered pair of ranks has a connection, whose bytes pass the sending
 * end of one group and the receiving end of another in chunks, with at most a window of them in flight. Acknowledgements
 * return through the queues of the opposite direction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "connections.h"
#include "waiting.h"

enum { AHEAD = 64 }; /* messages */

/* One end of a group: a server that carries one chunk at a time, in the order in which they come. */
typedef struct {
  eb_waiting waiting;
  eb_chunk carried;
  bool is_busy;
  uint32_t active;      /* its ranks with bytes that are not delivered yet */
  uint32_t connections; /* of a sending end, with such bytes */
  /* Of a sending end: the messages posted at time 0 that wait, before all else, and become chunks only some ahead. */
  uint32_t next_posted, end_posted;
  eb_chunk *ahead, *next_ahead, *end_ahead;
} server;

/* Of a connection that is not a short message. */
typedef struct {
  int64_t injected, transmitted, delivered, acknowledged; /* bytes; transmitted: those that have passed the sending end */
  int64_t posted, emitted; /* what was injected at time 0, and how much of that has become chunks */
  uint32_t next_injected, next_emitted, next_received, next_sent; /* messages that are not complete yet */
} progress;

/* When a server has carried its chunk: the bits of a time of 0 or more, which are in the same order, for one comparison without
 * a branch. */
typedef struct {
  uint64_t key;
  uint32_t server;
} event;

typedef struct {
  const eb_connections *all;
  const eb_queue_costs *costs;
  const eb_queue_times *times;
  server *servers;    /* the sending ends of all groups, then the receiving ends */
  progress *at;       /* of each connection that is not a short message */
  uint32_t *left;     /* connections that are not complete yet: of the sending ranks, then of the receiving ones */
  eb_chunk *ahead; /* of all sending ends */
  eb_waiting_store store;
  event *first;       /* a tree: [1] is the first event, [k] the first one of [2 k] and [2 k + 1]; each server has a leaf */
  uint32_t num_leaves;
  int64_t num_incomplete; /* messages that are not received, and sends that are not complete */
  double now_s;
  bool failed;
} simulation;

static uint64_t key_of(double time_s) {
  uint64_t key;
  memcpy(&key, &time_s, sizeof key);
  return key;
}

static double time_of(event of) {
  double time_s;
  memcpy(&time_s, &of.key, sizeof time_s);
  return time_s;
}

/* Sets when a server has carried its chunk, infinity if it is idle, and finds which one is first. At the same time sending ends
 * come before receiving ones, then by group: on the left of the tree. */
static void set_until(simulation *s, uint32_t number, double until_s) {
  event *const first = s->first;
  uint64_t key = key_of(until_s);
  uint32_t place = s->num_leaves + number;
  first[place].key = key;
  for (; place > 1; place /= 2) {
    const event other = first[place ^ 1];
    const bool is_other = other.key < key + (place & 1);
    key = is_other ? other.key : key;
    number = is_other ? other.server : number;
    first[place / 2] = (event){key, number};
  }
}

static bool begin_events(simulation *s) {
  const uint32_t num = 2 * (uint32_t)s->all->num_groups;
  for (s->num_leaves = 1; s->num_leaves < num;) s->num_leaves *= 2;
  s->first = malloc(2 * (size_t)s->num_leaves * sizeof *s->first);
  if (!s->first) return false;
  const uint64_t never = key_of(INFINITY);
  for (uint32_t place = 0; place < 2 * s->num_leaves; place++) s->first[place] = (event){never, place % s->num_leaves};
  return true;
}

static void enqueue(simulation *s, uint32_t number, eb_chunk one) {
  if (!eb_waiting_add(&s->servers[number].waiting, &s->store, one)) s->failed = true;
}

static double bandwidth_of(const simulation *s, const server *end, uint32_t message_class) {
  return s->costs->bandwidth_bytes_per_s[(int64_t)(end->active - 1) * s->costs->num_classes + message_class];
}

static uint32_t sending_end(const simulation *s, uint32_t rank) { return s->all->group[rank]; }

static uint32_t receiving_end(const simulation *s, uint32_t rank) { return (uint32_t)s->all->num_groups + s->all->group[rank]; }

static void begin(simulation *s, uint32_t number);
static void acknowledge(simulation *s, const eb_chunk *one);

/* An acknowledgement goes from the receiving rank to the sending one. */
static void leave_sending_end(simulation *s, eb_chunk one) {
  const uint32_t receiving = receiving_end(s, one.is_acknowledgement ? one.src : one.dst);
  enqueue(s, receiving, one);
  begin(s, receiving);
}

static void pass_acknowledgement(simulation *s, uint32_t number, eb_chunk one) {
  if (number < s->all->num_groups) leave_sending_end(s, one);
  else acknowledge(s, &one);
}

/* A chunk goes on to the receiving end while it is still sent, so it passes two idle ends in the time of one, but never leaves
 * before it has arrived. */
static void carry(simulation *s, uint32_t number, eb_chunk one) {
  server *end = &s->servers[number];
  const double carried_s = s->now_s + (double)one.bytes / bandwidth_of(s, end, one.message_class);
  const double until_s = one.arrived_s > carried_s ? one.arrived_s : carried_s;
  end->is_busy = true;
  end->carried = one;
  set_until(s, number, until_s);
  if (number >= s->all->num_groups) return;
  one.arrived_s = until_s;
  leave_sending_end(s, one);
}

static bool is_short(const eb_connections *all, uint32_t message) {
  return !all->connection_of || all->connection_of[message] == EB_SHORT;
}

/* Reads the next messages that were posted, which are far apart in memory: many at once, one does not wait for the other. */
static void read_ahead(const simulation *s, server *end) {
  const eb_connections *all = s->all;
  end->next_ahead = end->end_ahead = end->ahead;
  for (int k = 0; k < AHEAD && end->next_posted < end->end_posted; k++) {
    const uint32_t m = all->posted[end->next_posted++];
    *end->end_ahead++ = (eb_chunk){.bytes = all->size_bytes[m],
                                   .of = is_short(all, m) ? m : all->connection_of[m],
                                   .src = all->src[m],
                                   .dst = all->dst[m],
                                   .message_class = all->message_class[m],
                                   .is_long = !is_short(all, m)};
  }
}

/* Sets the bytes of the next chunk of a message that was posted; false if it has no more. */
static bool take_of_message(const simulation *s, eb_chunk *one) {
  const eb_connections *all = s->all;
  progress *at = &s->at[one->of];
  const int64_t left = all->end_byte[at->next_emitted] - at->emitted;
  one->bytes = left < all->chunk_bytes ? left : all->chunk_bytes;
  if (left <= 0 || at->emitted + one->bytes > at->posted) {
    at->next_emitted++;
    return false;
  }
  at->emitted += one->bytes;
  return true;
}

static bool take_posted(const simulation *s, server *end, eb_chunk *one) {
  for (;;) {
    if (end->next_ahead == end->end_ahead) {
      if (end->next_posted == end->end_posted) return false;
      read_ahead(s, end);
    }
    *one = *end->next_ahead;
    if (one->is_long && take_of_message(s, one)) return true; /* there may be more of it */
    end->next_ahead++;
    if (!one->is_long && one->bytes <= s->costs->window_bytes) return true;
  }
}

/* Begins with what waits at an idle server: acknowledgements pass, up to the next chunk. Afterwards the server is busy or
 * nothing waits there; so what an acknowledgement sets off at other idle servers never finds a queue, and the calls do not
 * nest deeper than one acknowledgement and the chunk that it releases. */
static void begin(simulation *s, uint32_t number) {
  server *end = &s->servers[number];
  eb_chunk one;
  while (!end->is_busy && (take_posted(s, end, &one) || eb_waiting_take(&end->waiting, &s->store, &one))) {
    if (one.is_acknowledgement) pass_acknowledgement(s, number, one);
    else carry(s, number, one);
  }
}

/* How many bytes of a connection may wait at its sending end: its part of what the end carries in a time, at least a chunk. */
static int64_t share_of_queue(const simulation *s, const server *end, uint32_t message_class) {
  const double bytes = s->costs->sending_queue_s * bandwidth_of(s, end, message_class) / end->connections;
  const int64_t chunk_bytes = s->all->chunk_bytes;
  return bytes > (double)chunk_bytes ? (int64_t)fmin(bytes, (double)s->costs->window_bytes) : chunk_bytes;
}

/* Writes the bytes of a connection up to `until_byte`, in whole chunks as far as its window and the queue of its end allow;
 * those that are posted at time 0 become chunks when they are carried. */
static void inject(simulation *s, uint32_t c, int64_t until_byte, bool is_posted) {
  const eb_connection *of = &s->all->connections[c];
  const int64_t chunk_bytes = s->all->chunk_bytes;
  progress *at = &s->at[c];
  while (at->injected < until_byte) {
    while (s->all->end_byte[at->next_injected] <= at->injected) at->next_injected++;
    const uint32_t end = sending_end(s, of->src);
    const uint16_t message_class = s->all->message_class[s->all->message[at->next_injected]];
    const int64_t left = until_byte - at->injected, bytes = left < chunk_bytes ? left : chunk_bytes;
    if (at->injected + bytes > at->acknowledged + s->costs->window_bytes) return;
    if (at->injected + bytes > at->transmitted + share_of_queue(s, &s->servers[end], message_class)) return;
    if (!is_posted)
      enqueue(s, end,
              (eb_chunk){.bytes = bytes, .of = c, .src = of->src, .dst = of->dst, .message_class = message_class, .is_long = true});
    at->injected += bytes;
  }
}

static void inject_rest(simulation *s, uint32_t c) { inject(s, c, s->all->end_byte[s->all->connections[c].end - 1], false); }

/* A message is received, or its send is complete. */
static void note_time(simulation *s, uint32_t message, double *message_s, uint32_t rank, double *last_s) {
  s->num_incomplete--;
  if (message_s) message_s[message] = s->now_s;
  if (last_s) last_s[rank] = s->now_s;
}

/* A send is complete when no more than what its connection buffers is not acknowledged yet. */
static bool is_buffered(const simulation *s, int64_t bytes, uint32_t message_class) {
  return (double)bytes <= s->costs->buffered_bytes[message_class];
}

static void complete_messages(simulation *s, uint32_t c) {
  const eb_connection *of = &s->all->connections[c];
  const eb_connections *all = s->all;
  progress *at = &s->at[c];
  for (; at->next_sent < of->end; at->next_sent++) {
    const uint32_t message = all->message[at->next_sent];
    if (!is_buffered(s, all->end_byte[at->next_sent] - at->acknowledged, all->message_class[message])) break;
    note_time(s, message, s->times->sent_s, of->src, s->times->last_sent_s);
  }
  for (; at->next_received < of->end && all->end_byte[at->next_received] <= at->delivered; at->next_received++)
    note_time(s, all->message[at->next_received], s->times->received_s, of->dst, s->times->last_received_s);
}

/* Counts a connection that has bytes which are not delivered yet. */
static void open_connection(simulation *s, uint32_t src, uint32_t dst) {
  server *sending = &s->servers[sending_end(s, src)];
  sending->connections++;
  if (s->left[src]++ == 0) sending->active++;
  if (s->left[s->all->num_ranks + dst]++ == 0) s->servers[receiving_end(s, dst)].active++;
}

static void close_connection(simulation *s, uint32_t src, uint32_t dst) {
  server *sending = &s->servers[sending_end(s, src)];
  sending->connections--;
  if (--s->left[src] == 0) sending->active--;
  if (--s->left[s->all->num_ranks + dst] == 0) s->servers[receiving_end(s, dst)].active--;
}

/* Delivers a chunk; returns whether nothing waits for its acknowledgement. */
static bool deliver_short(simulation *s, const eb_chunk *one) {
  note_time(s, one->of, s->times->received_s, one->dst, s->times->last_received_s);
  close_connection(s, one->src, one->dst);
  return is_buffered(s, one->bytes, one->message_class);
}

static bool deliver_long(simulation *s, const eb_chunk *one) {
  const eb_connection *of = &s->all->connections[one->of];
  progress *at = &s->at[one->of];
  at->delivered += one->bytes;
  complete_messages(s, one->of);
  if (at->next_received == of->end) close_connection(s, of->src, of->dst);
  return at->injected == s->all->end_byte[of->end - 1] && at->next_sent == of->end;
}

static void deliver(simulation *s, eb_chunk one) {
  if (one.is_long ? deliver_long(s, &one) : deliver_short(s, &one)) return;
  one.is_acknowledgement = true;
  enqueue(s, sending_end(s, one.dst), one);
  begin(s, sending_end(s, one.dst));
}

static void acknowledge(simulation *s, const eb_chunk *one) {
  if (one->is_long) {
    s->at[one->of].acknowledged += one->bytes;
    complete_messages(s, one->of);
    inject_rest(s, one->of);
  } else {
    note_time(s, one->of, s->times->sent_s, one->src, s->times->last_sent_s);
  }
  begin(s, sending_end(s, one->src));
}

static void finish(simulation *s, uint32_t number) {
  server *end = &s->servers[number];
  const eb_chunk one = end->carried;
  end->is_busy = false;
  if (number >= s->all->num_groups) {
    deliver(s, one);
  } else if (one.is_long) {
    s->at[one.of].transmitted += one.bytes;
    inject_rest(s, one.of);
  }
  begin(s, number);
  if (!end->is_busy) set_until(s, number, INFINITY);
}

/* Every message is written as far as its connection may, in the order of posting. */
static void post_all(simulation *s) {
  const eb_connections *all = s->all;
  for (int64_t m = 0; m < all->num_messages; m++) {
    if (!is_short(all, (uint32_t)m)) continue;
    open_connection(s, all->src[m], all->dst[m]);
    if (is_buffered(s, all->size_bytes[m], all->message_class[m]))
      note_time(s, (uint32_t)m, s->times->sent_s, all->src[m], s->times->last_sent_s);
  }
  for (uint32_t c = 0; c < all->num_connections; c++) {
    const eb_connection *of = &all->connections[c];
    s->at[c] = (progress){
        .next_injected = of->first, .next_received = of->first, .next_sent = of->first, .next_emitted = of->first};
    open_connection(s, of->src, of->dst);
    complete_messages(s, c);
  }
  for (uint32_t c = 0; c < all->num_connections; c++) {
    const eb_connection *of = &all->connections[c];
    for (uint32_t k = of->first; k < of->end; k++) inject(s, c, all->end_byte[k], true);
    s->at[c].posted = s->at[c].injected;
  }
  for (int64_t g = 0; g < all->num_groups; g++) {
    s->servers[g].next_posted = all->first_posted[g];
    s->servers[g].end_posted = all->first_posted[g + 1];
    s->servers[g].ahead = s->servers[g].next_ahead = s->servers[g].end_ahead = s->ahead + g * AHEAD;
  }
  for (int64_t g = 0; g < all->num_groups; g++) begin(s, (uint32_t)g);
}

static bool begin_simulation(simulation *s) {
  const eb_connections *all = s->all;
  s->num_incomplete = 2 * all->num_messages;
  s->servers = calloc(2 * (size_t)all->num_groups + 1, sizeof *s->servers);
  s->at = malloc(((size_t)all->num_connections + 1) * sizeof *s->at);
  s->left = calloc(2 * (size_t)all->num_ranks + 1, sizeof *s->left);
  s->ahead = malloc(((size_t)all->num_groups * AHEAD + 1) * sizeof *s->ahead);
  return s->servers && s->at && s->left && s->ahead && begin_events(s);
}

int eb_connections_complete(const eb_connections *all, const eb_queue_costs *costs, const eb_queue_times *times) {
  simulation s = {.all = all, .costs = costs, .times = times};
  s.failed = !begin_simulation(&s);
  if (!s.failed) post_all(&s);
  while (!s.failed) {
    const event next = s.first[1];
    s.now_s = time_of(next);
    if (s.now_s == INFINITY) break;
    finish(&s, next.server);
  }
  const int outcome = s.failed ? -1 : s.num_incomplete == 0 ? 0 : EB_STALLED;
  eb_waiting_free(&s.store);
  free(s.servers);
  free(s.at);
  free(s.left);
  free(s.ahead);
  free(s.first);
  return outcome;
}
