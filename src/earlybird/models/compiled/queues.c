/* Messages through first-come-first-served queues: every ordered pair of ranks has a connection, whose bytes pass the sending
 * end of one group and the receiving end of another in chunks, with at most a window of them in flight. Acknowledgements
 * return through the queues of the opposite direction. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "order.h"

typedef struct {
  uint32_t first, end; /* of its messages in eb_connections.message, in the order given */
  uint32_t src, dst;
} connection;

struct eb_connections {
  int64_t num_messages, num_ranks, num_groups, num_connections;
  uint32_t *message;       /* by connection */
  int64_t *end_byte;       /* of each of these, counted from the beginning of its connection */
  uint16_t *message_class; /* of each of these */
  uint32_t *group;         /* of each rank */
  uint32_t *posted;        /* the connections of all messages, by sending group, in the order in which they are posted */
  connection *connections;
};

void eb_connections_destroy(eb_connections *all) {
  if (!all) return;
  free(all->message);
  free(all->end_byte);
  free(all->message_class);
  free(all->group);
  free(all->posted);
  free(all->connections);
  free(all);
}

/* Sorts the messages by key, equal ones in the order given. */
static bool order_by(const uint64_t *key, int64_t num, uint32_t *order) {
  uint32_t *scratch = malloc((size_t)(num + 1) * sizeof *scratch);
  if (!scratch) return false;
  for (int64_t i = 0; i < num; i++) order[i] = (uint32_t)i;
  eb_order_by(key, num, order, scratch);
  free(scratch);
  return true;
}

/* Which messages belong together: belongs_to[message], and the number of connections. */
static int64_t find_pairs(const eb_connections *all, const uint32_t *src, const uint32_t *dst, uint64_t *key, uint32_t *order,
                          uint32_t *belongs_to) {
  const int64_t num = all->num_messages;
  for (int64_t i = 0; i < num; i++) key[i] = (uint64_t)src[i] * (uint64_t)all->num_ranks + (uint64_t)dst[i];
  if (!order_by(key, num, order)) return -1;
  int64_t found = 0;
  for (int64_t i = 0; i < num; i++) {
    found += i == 0 || key[order[i]] != key[order[i - 1]];
    belongs_to[order[i]] = (uint32_t)(found - 1);
  }
  return found;
}

/* The order in which the messages of a group are posted, one group after the other: the k-th messages of all its ranks come
 * before any (k+1)-th one. */
static bool find_order_of_posting(const eb_connections *all, const uint32_t *src, uint64_t *key, uint32_t *order) {
  uint32_t *count = calloc((size_t)(all->num_ranks + 1), sizeof *count);
  if (!count) return false;
  for (int64_t i = 0; i < all->num_messages; i++) key[i] = (uint64_t)all->group[src[i]] << 32 | count[src[i]]++;
  free(count);
  return order_by(key, all->num_messages, order);
}

/* Numbers the connections in the order of their first messages, so that those that are in use at a time lie side by side. */
static bool number_connections(eb_connections *all, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                               const uint16_t *message_class, const uint32_t *belongs_to) {
  const int64_t num = all->num_messages;
  uint32_t *number = malloc((size_t)(all->num_connections + 1) * sizeof *number);
  if (!number) return false;
  memset(number, 0xff, (size_t)(all->num_connections + 1) * sizeof *number);
  uint32_t numbered = 0;
  for (int64_t i = 0; i < num; i++) {
    const uint32_t m = all->posted[i];
    if (number[belongs_to[m]] == UINT32_MAX) {
      number[belongs_to[m]] = numbered;
      all->connections[numbered++] = (connection){.src = src[m], .dst = dst[m]};
    }
    all->posted[i] = number[belongs_to[m]];
    all->connections[all->posted[i]].end++; /* how many, for now */
  }
  uint32_t first = 0;
  for (uint32_t c = 0; c < numbered; c++) {
    connection *of = &all->connections[c];
    const uint32_t count = of->end;
    of->first = of->end = first;
    first += count;
  }
  for (int64_t i = 0; i < num; i++) {
    connection *of = &all->connections[number[belongs_to[i]]];
    const uint32_t k = of->end++;
    all->message[k] = (uint32_t)i;
    all->end_byte[k] = (k == of->first ? 0 : all->end_byte[k - 1]) + size_bytes[i];
    all->message_class[k] = message_class[i];
  }
  free(number);
  return true;
}

static bool find_connections(eb_connections *all, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                             const uint16_t *message_class) {
  const size_t messages = (size_t)all->num_messages + 1;
  uint64_t *key = calloc(messages, sizeof *key);
  uint32_t *belongs_to = malloc(messages * sizeof *belongs_to);
  bool done = key && belongs_to;
  if (done) {
    all->num_connections = find_pairs(all, src, dst, key, all->posted, belongs_to);
    done = all->num_connections >= 0 && find_order_of_posting(all, src, key, all->posted) &&
           number_connections(all, src, dst, size_bytes, message_class, belongs_to);
  }
  free(key);
  free(belongs_to);
  return done;
}

eb_connections *eb_connections_create(int64_t num_messages, const uint32_t *src, const uint32_t *dst, const int64_t *size_bytes,
                                      const uint16_t *message_class, int64_t num_ranks, const int64_t *group) {
  eb_connections *all = calloc(1, sizeof *all);
  if (!all) return NULL;
  const size_t messages = (size_t)num_messages + 1;
  all->num_messages = num_messages;
  all->num_ranks = num_ranks;
  all->message = malloc(messages * sizeof *all->message);
  all->end_byte = malloc(messages * sizeof *all->end_byte);
  all->message_class = malloc(messages * sizeof *all->message_class);
  all->posted = malloc(messages * sizeof *all->posted);
  all->connections = malloc(messages * sizeof *all->connections);
  all->group = malloc((size_t)(num_ranks + 1) * sizeof *all->group);
  bool done = all->message && all->end_byte && all->message_class && all->posted && all->connections && all->group;
  if (done) {
    for (int64_t rank = 0; rank < num_ranks; rank++) {
      all->group[rank] = (uint32_t)group[rank];
      if (group[rank] >= all->num_groups) all->num_groups = group[rank] + 1;
    }
    done = find_connections(all, src, dst, size_bytes, message_class);
  }
  if (done) return all;
  eb_connections_destroy(all);
  return NULL;
}

/* Some bytes of a connection, or the acknowledgement of as many, which takes no time but has its place in the queues. */
typedef struct {
  uint32_t connection;
  uint16_t message_class; /* of its first byte */
  bool is_acknowledgement;
  int64_t bytes;
  double arrived_s; /* when its last byte is there */
} chunk;

/* One end of a group: a server that carries one chunk at a time, in the order in which they come. */
typedef struct {
  chunk *waiting; /* a ring */
  uint32_t head, num, size; /* a power of two */
  bool is_busy;
  chunk carried;
  uint32_t active;      /* its ranks with bytes that are not delivered yet */
  uint32_t connections; /* of a sending end, with such bytes */
} server;

typedef struct {
  int64_t injected, transmitted, delivered, acknowledged; /* bytes; transmitted: those that have passed the sending end */
  uint32_t next_injected, next_received, next_sent; /* messages that are not complete yet */
} progress;

typedef struct {
  double time_s;
  uint32_t server;
} event;

typedef struct {
  const eb_connections *all;
  const eb_queue_costs *costs;
  const eb_queue_times *times;
  server *servers; /* the sending ends of all groups, then the receiving ends */
  progress *at;    /* of each connection */
  uint32_t *left;  /* connections that are not complete yet: of the sending ranks, then of the receiving ones */
  event *heap;     /* at most one event of each server */
  uint32_t num_events;
  double now_s;
  bool failed;
} simulation;

/* At the same time sending ends come first, then by group. */
static bool comes_before(event a, event b) { return a.time_s < b.time_s || (a.time_s == b.time_s && a.server < b.server); }

static void add_event(simulation *s, event new) {
  uint32_t place = s->num_events++;
  for (; place && comes_before(new, s->heap[(place - 1) / 2]); place = (place - 1) / 2) s->heap[place] = s->heap[(place - 1) / 2];
  s->heap[place] = new;
}

static event take_event(simulation *s) {
  const event first = s->heap[0], last = s->heap[--s->num_events];
  uint32_t place = 0;
  for (;;) {
    uint32_t child = 2 * place + 1;
    if (child >= s->num_events) break;
    if (child + 1 < s->num_events && comes_before(s->heap[child + 1], s->heap[child])) child++;
    if (!comes_before(s->heap[child], last)) break;
    s->heap[place] = s->heap[child];
    place = child;
  }
  s->heap[place] = last;
  return first;
}

static void enqueue(simulation *s, uint32_t number, chunk one) {
  server *to = &s->servers[number];
  if (to->num == to->size) {
    const uint32_t size = to->size ? 2 * to->size : 64;
    chunk *ring = malloc(size * sizeof *ring);
    if (!ring) {
      s->failed = true;
      return;
    }
    for (uint32_t i = 0; i < to->num; i++) ring[i] = to->waiting[(to->head + i) & (to->size - 1)];
    free(to->waiting);
    to->waiting = ring;
    to->size = size;
    to->head = 0;
  }
  to->waiting[(to->head + to->num++) & (to->size - 1)] = one;
}

static double bandwidth_of(const simulation *s, const server *end, uint32_t message_class) {
  return s->costs->bandwidth_bytes_per_s[(int64_t)(end->active - 1) * s->costs->num_classes + message_class];
}

static uint32_t sending_end(const simulation *s, uint32_t rank) { return s->all->group[rank]; }

static uint32_t receiving_end(const simulation *s, uint32_t rank) { return (uint32_t)s->all->num_groups + s->all->group[rank]; }

static void begin(simulation *s, uint32_t number);
static void acknowledge(simulation *s, chunk one);

/* An acknowledgement goes from the receiving rank to the sending one. */
static void leave_sending_end(simulation *s, chunk one) {
  const connection *of = &s->all->connections[one.connection];
  const uint32_t receiving = receiving_end(s, one.is_acknowledgement ? of->src : of->dst);
  enqueue(s, receiving, one);
  begin(s, receiving);
}

static void pass_acknowledgement(simulation *s, uint32_t number, chunk one) {
  if (number < s->all->num_groups) leave_sending_end(s, one);
  else acknowledge(s, one);
}

/* A chunk goes on to the receiving end while it is still sent, so it passes two idle ends in the time of one, but never leaves
 * before it has arrived. */
static void carry(simulation *s, uint32_t number, chunk one) {
  server *end = &s->servers[number];
  const double until_s = fmax(one.arrived_s, s->now_s + (double)one.bytes / bandwidth_of(s, end, one.message_class));
  end->is_busy = true;
  end->carried = one;
  add_event(s, (event){until_s, number});
  if (number >= s->all->num_groups) return;
  one.arrived_s = until_s;
  leave_sending_end(s, one);
}

/* Begins with what waits at an idle server: acknowledgements pass, up to the next chunk. Afterwards the server is busy or
 * nothing waits there; so what an acknowledgement sets off at other idle servers never finds a queue, and the calls do not
 * nest deeper than one acknowledgement and the chunk that it releases. */
static void begin(simulation *s, uint32_t number) {
  server *end = &s->servers[number];
  while (!end->is_busy && end->num) {
    const chunk one = end->waiting[end->head];
    end->head = (end->head + 1) & (end->size - 1);
    end->num--;
    if (one.is_acknowledgement) pass_acknowledgement(s, number, one);
    else carry(s, number, one);
  }
}

/* How many bytes of a connection may wait at its sending end: its part of what the end carries in a time, at least a chunk. */
static int64_t share_of_queue(const simulation *s, const server *end, uint32_t message_class) {
  const double bytes = s->costs->sending_queue_s * bandwidth_of(s, end, message_class) / end->connections;
  return bytes > (double)s->costs->chunk_bytes ? (int64_t)fmin(bytes, (double)s->costs->window_bytes) : s->costs->chunk_bytes;
}

/* Writes the bytes of a connection up to `until_byte`, in whole chunks as far as its window and the queue of its end allow. */
static void inject(simulation *s, uint32_t c, int64_t until_byte) {
  const connection *of = &s->all->connections[c];
  progress *at = &s->at[c];
  while (at->injected < until_byte) {
    while (s->all->end_byte[at->next_injected] <= at->injected) at->next_injected++;
    const uint32_t end = sending_end(s, of->src), message_class = s->all->message_class[at->next_injected];
    const int64_t left = until_byte - at->injected, bytes = left < s->costs->chunk_bytes ? left : s->costs->chunk_bytes;
    if (at->injected + bytes > at->acknowledged + s->costs->window_bytes) return;
    if (at->injected + bytes > at->transmitted + share_of_queue(s, &s->servers[end], message_class)) return;
    enqueue(s, end, (chunk){.connection = c, .message_class = message_class, .bytes = bytes});
    at->injected += bytes;
  }
}

static void inject_rest(simulation *s, uint32_t c) {
  const connection *of = &s->all->connections[c];
  inject(s, c, s->all->end_byte[of->end - 1]);
  begin(s, sending_end(s, of->src));
}

/* The message at a place of a connection is received, or its send is complete. */
static void note_time(const simulation *s, uint32_t place, double *message_s, uint32_t rank, double *last_s) {
  if (message_s) message_s[s->all->message[place]] = s->now_s;
  if (last_s) last_s[rank] = s->now_s;
}

/* A send is complete when no more than what its connection buffers is not acknowledged yet. */
static void complete_messages(simulation *s, uint32_t c) {
  const connection *of = &s->all->connections[c];
  const eb_connections *all = s->all;
  progress *at = &s->at[c];
  while (at->next_sent < of->end &&
         (double)(all->end_byte[at->next_sent] - at->acknowledged) <= s->costs->buffered_bytes[all->message_class[at->next_sent]])
    note_time(s, at->next_sent++, s->times->sent_s, of->src, s->times->last_sent_s);
  while (at->next_received < of->end && all->end_byte[at->next_received] <= at->delivered)
    note_time(s, at->next_received++, s->times->received_s, of->dst, s->times->last_received_s);
}

static void deliver(simulation *s, chunk one) {
  const connection *of = &s->all->connections[one.connection];
  progress *at = &s->at[one.connection];
  at->delivered += one.bytes;
  complete_messages(s, one.connection);
  if (at->next_received == of->end) {
    server *sending = &s->servers[sending_end(s, of->src)];
    sending->connections--;
    if (--s->left[of->src] == 0) sending->active--;
    if (--s->left[s->all->num_ranks + of->dst] == 0) s->servers[receiving_end(s, of->dst)].active--;
  }
  if (at->injected == s->all->end_byte[of->end - 1] && at->next_sent == of->end) return; /* nothing waits for it */
  one.is_acknowledgement = true;
  enqueue(s, sending_end(s, of->dst), one);
  begin(s, sending_end(s, of->dst));
}

static void acknowledge(simulation *s, chunk one) {
  s->at[one.connection].acknowledged += one.bytes;
  complete_messages(s, one.connection);
  inject_rest(s, one.connection);
}

static void finish(simulation *s, uint32_t number) {
  server *end = &s->servers[number];
  const chunk one = end->carried;
  end->is_busy = false;
  if (number >= s->all->num_groups) {
    deliver(s, one);
  } else {
    s->at[one.connection].transmitted += one.bytes;
    inject_rest(s, one.connection);
  }
  begin(s, number);
}

/* Every message is written as far as its connection may, in the order of posting. */
static void post_all(simulation *s) {
  const eb_connections *all = s->all;
  for (int64_t c = 0; c < all->num_connections; c++) {
    const connection *of = &all->connections[c];
    s->at[c] = (progress){.next_injected = of->first, .next_received = of->first, .next_sent = of->first};
    server *sending = &s->servers[sending_end(s, of->src)];
    sending->connections++;
    if (s->left[of->src]++ == 0) sending->active++;
    if (s->left[all->num_ranks + of->dst]++ == 0) s->servers[receiving_end(s, of->dst)].active++;
    complete_messages(s, (uint32_t)c);
  }
  uint32_t *written = calloc((size_t)all->num_connections + 1, sizeof *written);
  if (!written) {
    s->failed = true;
    return;
  }
  for (int64_t i = 0; i < all->num_messages; i++) {
    const uint32_t c = all->posted[i], k = all->connections[c].first + written[c]++;
    inject(s, c, all->end_byte[k]);
  }
  free(written);
  for (int64_t g = 0; g < all->num_groups; g++) begin(s, (uint32_t)g);
}

static bool all_complete(const simulation *s) {
  for (int64_t c = 0; c < s->all->num_connections; c++) {
    const uint32_t end = s->all->connections[c].end;
    if (s->at[c].next_received != end || s->at[c].next_sent != end) return false;
  }
  return true;
}

int eb_connections_complete(const eb_connections *all, const eb_queue_costs *costs, const eb_queue_times *times) {
  const size_t ends = 2 * (size_t)all->num_groups + 1;
  simulation s = {.all = all, .costs = costs, .times = times};
  s.servers = calloc(ends, sizeof *s.servers);
  s.heap = malloc(ends * sizeof *s.heap);
  s.at = malloc(((size_t)all->num_connections + 1) * sizeof *s.at);
  s.left = calloc(2 * (size_t)all->num_ranks + 1, sizeof *s.left);
  s.failed = !s.servers || !s.heap || !s.at || !s.left;
  if (!s.failed) post_all(&s);
  while (!s.failed && s.num_events) {
    const event next = take_event(&s);
    s.now_s = next.time_s;
    finish(&s, next.server);
  }
  const int outcome = s.failed ? -1 : all_complete(&s) ? 0 : EB_STALLED;
  for (size_t k = 0; s.servers && k < ends; k++) free(s.servers[k].waiting);
  free(s.servers);
  free(s.heap);
  free(s.at);
  free(s.left);
  return outcome;
}
