/* Simulates programs: threads run until they wait, and messages move in the order of time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flows.h"
#include "models.h"
#include "program_check.h"

/* Events closer than this fraction of the time are ties separated by rounding. */
static const double TIES = 1e-12;
static const int64_t NONE = -1;

enum { BEGIN_MESSAGE, WAKE_THREAD, RUN_THREAD };

typedef struct {
  double now_s; /* of the thread: it may be ahead of the network */
  int64_t at;   /* its present operation */
  int64_t num_missing; /* requests that an EB_WAIT_ALL waits for */
  uint32_t turn;       /* counts waits, so that an old event is recognized */
  bool is_waiting, is_paid, is_outside; /* paid: the time of the operation has passed */
} thread;

typedef struct {
  int64_t send, receive; /* operations */
  uint32_t src, dst;
  uint32_t next; /* in a list of messages that wait for their receiver or sender to be inside the MPI, or for their turn */
  uint32_t connection;
} message;

/* The messages from one rank to another follow each other. */
typedef struct {
  uint32_t first, last; /* messages that wait for their turn + 1 */
  bool is_busy;
} connection;

typedef struct {
  int64_t num_members, num_entered;
  double last_s, root_s;
} collective;

typedef struct {
  const eb_program *program;
  const eb_network *network;
  const eb_simulated *result;
  thread *threads;
  message *messages;
  connection *connections;
  collective *collectives;
  int64_t *member_first, *members; /* the operations that enter each collective */
  double *done_s;                  /* when the request of an operation is complete, NaN while that is not known */
  uint32_t *waiter;                /* the thread that waits for it + 1 */
  uint32_t *ready;                 /* a ring of threads that go on */
  int64_t ready_first, num_ready;
  uint32_t *num_inside;                   /* of each rank: its threads inside the MPI */
  double *inside_until_s;                 /* of each rank: when the last one left */
  uint32_t *for_receiver, *for_sender;    /* of each rank: the first message that waits for it + 1 */
  bool in_steps; /* threads stay with the network, because messages need to know where they are */
  eb_events events;
  eb_timers timers;
  eb_bandwidth table;
  eb_inside *inside;
  eb_between *between;
  double now_s;
  bool failed;
} simulation;

static void post_event(simulation *s, double time_s, uint32_t kind, uint32_t index, uint32_t turn) {
  if (!eb_events_post(&s->events, (eb_event){.time_s = time_s, .kind = kind, .index = index, .turn = turn})) s->failed = true;
}

/* Lets a thread go on at its time. */
static void resume(simulation *s, uint32_t t) {
  if (s->in_steps) {
    post_event(s, s->threads[t].now_s, RUN_THREAD, t, 0);
    return;
  }
  s->ready[(s->ready_first + s->num_ready++) % s->program->num_threads] = t;
}

static bool is_posted(const simulation *s, int64_t request) { return !isnan(s->result->end_s[request]); }

static bool is_known(const simulation *s, int64_t request) { return !isnan(s->done_s[request]) && is_posted(s, request); }

static uint32_t class_of(const simulation *s, int64_t m) { return (uint32_t)s->program->message_class[m]; }

static bool awaits_receive(const simulation *s, uint32_t c) { return s->network->waits[c] || s->network->awaits_receive[c]; }

/* When a request is complete, and what completing it occupies the processor. */
static double complete_s(const simulation *s, int64_t request) { return fmax(s->done_s[request], s->result->end_s[request]); }

static double occupied_s(const simulation *s, int64_t request) {
  if (s->program->operation[request] != EB_RECEIVE) return 0;
  return s->network->receive_s[class_of(s, s->program->argument[request])];
}

typedef struct {
  double time_s;
  int64_t request;
} completion;

static int by_time(const void *a, const void *b) {
  const completion *x = a, *y = b;
  if (x->time_s != y->time_s) return x->time_s < y->time_s ? -1 : 1;
  return x->request < y->request ? -1 : x->request > y->request;
}

static void complete_one(simulation *s, thread *of, completion next) {
  if (next.time_s > of->now_s) {
    of->now_s = next.time_s;
    s->result->last_request[of->at] = next.request;
  }
  of->now_s += occupied_s(s, next.request);
}

static void end_operation(simulation *s, thread *of) {
  s->result->end_s[of->at++] = of->now_s;
  of->is_paid = false;
}

static void end_wait(simulation *s, thread *of) {
  of->now_s += s->program->operation_s[of->at];
  of->is_waiting = false;
  of->turn++;
  end_operation(s, of);
}

/* All requests of a set are complete: in the order of time, each after the one before it. */
static void end_wait_all(simulation *s, thread *of) {
  const int64_t set = s->program->argument[of->at], first = s->program->set_first[set];
  const int64_t num = s->program->set_first[set + 1] - first;
  completion few[8], *all = num <= 8 ? few : malloc((size_t)num * sizeof *all);
  if (!all) {
    s->failed = true;
    return;
  }
  for (int64_t i = 0; i < num; i++) {
    const int64_t request = s->program->set_requests[first + i];
    all[i] = (completion){complete_s(s, request), request};
    s->waiter[request] = 0;
  }
  if (num > 1) qsort(all, (size_t)num, sizeof *all, by_time);
  for (int64_t i = 0; i < num; i++) complete_one(s, of, all[i]);
  if (all != few) free(all);
  end_wait(s, of);
}

/* The first request of a set, if its time has come. */
static bool try_wait_any(simulation *s, thread *of, double now_s) {
  const int64_t set = s->program->argument[of->at];
  completion first = {INFINITY, NONE};
  for (int64_t i = s->program->set_first[set]; i < s->program->set_first[set + 1]; i++) {
    const int64_t request = s->program->set_requests[i];
    if (!is_known(s, request)) continue;
    const completion candidate = {complete_s(s, request), request};
    if (by_time(&candidate, &first) < 0) first = candidate;
  }
  if (first.time_s > now_s) return false;
  for (int64_t i = s->program->set_first[set]; i < s->program->set_first[set + 1]; i++) s->waiter[s->program->set_requests[i]] = 0;
  complete_one(s, of, first);
  end_wait(s, of);
  return true;
}

/* A request has become known: what waits for it may end. */
static void announce(simulation *s, int64_t request) {
  if (!s->waiter[request] || !is_known(s, request)) return;
  const uint32_t t = s->waiter[request] - 1;
  thread *of = &s->threads[t];
  if (s->program->operation[of->at] == EB_WAIT_ANY) {
    post_event(s, fmax(complete_s(s, request), s->now_s), WAKE_THREAD, t, of->turn);
  } else if (--of->num_missing == 0) {
    end_wait_all(s, of);
    resume(s, t);
  }
}

static void know(simulation *s, int64_t request, double time_s) {
  s->done_s[request] = time_s;
  announce(s, request);
}

static void carry(simulation *s, uint32_t m) {
  const message *of = &s->messages[m];
  const uint32_t c = class_of(s, m);
  const int64_t bytes = s->program->message_bytes[m];
  s->connections[of->connection].is_busy = true;
  if (s->network->is_between[c]) s->failed |= !eb_between_begin(s->between, s->now_s, m, of->src, of->dst, c, bytes);
  else s->failed |= !eb_inside_begin(s->inside, s->now_s, m, of->dst, c, bytes);
}

static void wait_for_turn(simulation *s, uint32_t m) {
  connection *on = &s->connections[s->messages[m].connection];
  s->messages[m].next = 0;
  if (on->last) s->messages[on->last - 1].next = m + 1;
  else on->first = m + 1;
  on->last = m + 1;
}

/* The last byte has left, if there is one. */
static void leave(simulation *s, uint32_t m) {
  const uint32_t c = class_of(s, m);
  s->result->left_s[m] = s->now_s;
  if (s->network->waits[c]) know(s, s->messages[m].send, s->now_s);
  know(s, s->messages[m].receive, s->now_s + s->network->latency_s[c]);
}

static void carry_next(simulation *s, connection *on) {
  on->is_busy = false;
  while (on->first && !on->is_busy) {
    const uint32_t m = on->first - 1;
    on->first = s->messages[m].next;
    if (!on->first) on->last = 0;
    if (s->program->message_bytes[m] == 0) leave(s, m);
    else carry(s, m);
  }
}

static void begin_message(simulation *s, uint32_t m) {
  const message *of = &s->messages[m];
  s->result->begun_s[m] = s->now_s;
  const uint32_t c = class_of(s, m);
  if (awaits_receive(s, c) && !s->network->waits[c]) know(s, of->send, s->now_s);
  if (s->connections[of->connection].is_busy) wait_for_turn(s, m);
  else if (s->program->message_bytes[m] == 0) leave(s, m);
  else carry(s, m);
}

static void end_message(simulation *s, uint32_t timer) {
  const uint32_t num_pools = eb_inside_num_pools(s->inside);
  uint32_t m;
  if (timer < num_pools) {
    m = eb_inside_end(s->inside, s->now_s, timer);
  } else {
    m = eb_between_next(s->between, timer);
    eb_between_end(s->between, s->now_s, timer, s->messages[m].src, s->messages[m].dst);
  }
  carry_next(s, &s->connections[s->messages[m].connection]);
  leave(s, m);
}

/* At the moment at which it leaves a rank is still inside, whatever else happens at that moment. */
static bool is_inside(const simulation *s, uint32_t rank) { return s->num_inside[rank] || s->inside_until_s[rank] >= s->now_s; }

static void wait_for_sender(simulation *s, uint32_t m) {
  const uint32_t src = s->messages[m].src;
  if (is_inside(s, src)) {
    post_event(s, s->now_s, BEGIN_MESSAGE, m, 0);
    return;
  }
  s->messages[m].next = s->for_sender[src];
  s->for_sender[src] = m + 1;
}

static void wait_for_receiver(simulation *s, uint32_t m) {
  const uint32_t dst = s->messages[m].dst;
  if (is_inside(s, dst)) {
    wait_for_sender(s, m);
    return;
  }
  s->messages[m].next = s->for_receiver[dst];
  s->for_receiver[dst] = m + 1;
}

/* A list whose last message was put in front; the first is to go first. */
static uint32_t in_order(simulation *s, uint32_t m) {
  uint32_t before = 0;
  while (m) {
    const uint32_t next = s->messages[m - 1].next;
    s->messages[m - 1].next = before;
    before = m;
    m = next;
  }
  return before;
}

/* A rank has come into the MPI, perhaps only for a moment. */
static void make_progress(simulation *s, uint32_t rank) {
  uint32_t m = in_order(s, s->for_receiver[rank]);
  s->for_receiver[rank] = 0;
  while (m) {
    const uint32_t here = m - 1;
    m = s->messages[here].next;
    wait_for_sender(s, here);
  }
  m = in_order(s, s->for_sender[rank]);
  s->for_sender[rank] = 0;
  while (m) {
    const uint32_t here = m - 1;
    m = s->messages[here].next;
    post_event(s, s->now_s, BEGIN_MESSAGE, here, 0);
  }
}

static void match(simulation *s, int64_t m) {
  const message *of = &s->messages[m];
  const uint32_t c = class_of(s, m);
  const double sent_s = s->result->end_s[of->send];
  const double time_s = awaits_receive(s, c) ? fmax(sent_s, s->result->end_s[of->receive]) : sent_s;
  if (s->network->starts_inside[c]) wait_for_receiver(s, (uint32_t)m);
  else post_event(s, fmax(time_s, s->now_s), BEGIN_MESSAGE, (uint32_t)m, 0);
}

static void post_send(simulation *s, thread *of) {
  const int64_t m = s->program->argument[of->at], request = of->at;
  end_operation(s, of);
  if (!awaits_receive(s, class_of(s, m))) {
    match(s, m);
    know(s, request, of->now_s);
  } else if (is_posted(s, s->messages[m].receive)) {
    match(s, m);
  }
}

static void post_receive(simulation *s, thread *of) {
  const int64_t m = s->program->argument[of->at], request = of->at;
  end_operation(s, of);
  if (awaits_receive(s, class_of(s, m)) && is_posted(s, s->messages[m].send)) match(s, m);
  announce(s, request); /* if another thread waits for it, and it is there */
}

static void enter(simulation *s, thread *of, int64_t rank) {
  const int64_t k = s->program->argument[of->at], request = of->at;
  collective *entered = &s->collectives[k];
  end_operation(s, of);
  const int64_t first = s->member_first[k], end = s->member_first[k + 1], root = s->program->collective_root[k];
  const double now_s = of->now_s, *cost_s = s->program->operation_s;
  entered->num_entered++;
  entered->last_s = fmax(entered->last_s, now_s);
  const bool is_root = s->program->collective_semantics[k] == EB_WAIT_FOR_THREAD ? of - s->threads == root : rank == root;
  if (is_root) entered->root_s = now_s;
  const bool is_whole = entered->num_entered == entered->num_members;
  switch (s->program->collective_semantics[k]) {
    case EB_ALL_WAIT:
    case EB_THREADS_WAIT:
      for (int64_t i = first; is_whole && i < end; i++) know(s, s->members[i], entered->last_s + cost_s[s->members[i]]);
      break;
    case EB_ROOT_WAITS:
      if (!is_root) know(s, request, now_s + cost_s[request]);
      for (int64_t i = first; is_whole && i < end; i++)
        if (isnan(s->done_s[s->members[i]])) know(s, s->members[i], entered->last_s + cost_s[s->members[i]]);
      break;
    case EB_WAIT_FOR_ROOT:
    case EB_WAIT_FOR_THREAD:
      if (is_root) {
        for (int64_t i = first; i < end; i++)
          if (is_posted(s, s->members[i]))
            know(s, s->members[i], fmax(s->result->end_s[s->members[i]], now_s) + cost_s[s->members[i]]);
      } else if (!isnan(entered->root_s)) {
        know(s, request, fmax(entered->root_s, now_s) + cost_s[request]);
      }
      break;
    default: { /* EB_PREFIX: members are in the order of ranks */
      double last_s = -INFINITY;
      for (int64_t i = first; i < end && is_posted(s, s->members[i]); i++) {
        last_s = fmax(last_s, s->result->end_s[s->members[i]]);
        if (isnan(s->done_s[s->members[i]])) know(s, s->members[i], last_s + cost_s[s->members[i]]);
      }
    }
  }
}

/* Begins a wait; returns whether it has ended at once. */
static bool wait(simulation *s, uint32_t t) {
  thread *of = &s->threads[t];
  const int64_t set = s->program->argument[of->at];
  const int64_t first = s->program->set_first[set], end = s->program->set_first[set + 1];
  const bool is_any = s->program->operation[of->at] == EB_WAIT_ANY && end > first;
  of->is_waiting = true;
  of->num_missing = 0;
  for (int64_t i = first; i < end; i++) {
    const int64_t request = s->program->set_requests[i];
    if (is_known(s, request) && !is_any) continue;
    of->num_missing++;
    s->waiter[request] = t + 1;
    /* What is known of the time to come may be overtaken by what is not known yet. */
    if (is_any && is_known(s, request))
      post_event(s, fmax(fmax(complete_s(s, request), of->now_s), s->now_s), WAKE_THREAD, t, of->turn);
  }
  if (is_any || of->num_missing) return false;
  end_wait_all(s, of);
  return true;
}

static void set_outside(simulation *s, uint32_t rank, thread *of, bool is_outside) {
  if (of->is_outside == is_outside) return;
  of->is_outside = is_outside;
  if (is_outside) {
    s->inside_until_s[rank] = s->now_s;
    s->num_inside[rank]--;
  } else if (s->num_inside[rank]++ == 0) {
    make_progress(s, rank);
  }
}

/* Lets the time of the operation pass; returns whether the thread has to wait for the network until then. */
static bool pay(simulation *s, uint32_t t, uint32_t rank) {
  thread *of = &s->threads[t];
  const uint8_t kind = s->program->operation[of->at];
  if (of->is_paid || kind == EB_WAIT_ALL || kind == EB_WAIT_ANY || kind == EB_ENTER) return false;
  const double time_s = s->program->operation_s[of->at];
  of->now_s += time_s;
  of->is_paid = true;
  if (!s->in_steps || time_s == 0) return false;
  set_outside(s, rank, of, kind == EB_COMPUTE);
  resume(s, t);
  return true;
}

/* Does the thread wait for others of its process, which is no call of the MPI? */
static bool is_of_threads(const simulation *s, int64_t k) {
  const eb_program *const program = s->program;
  if (program->operation[k] == EB_WAIT_ALL) {
    const int64_t set = program->argument[k], first = program->set_first[set];
    if (first == program->set_first[set + 1]) return false;
    k = program->set_requests[first];
  }
  return program->operation[k] == EB_ENTER && program->collective_semantics[program->argument[k]] >= EB_THREADS_WAIT;
}

static void run_thread(simulation *s, uint32_t t) {
  thread *of = &s->threads[t];
  const int64_t rank = s->program->thread_rank[t], end = s->program->first[t + 1];
  while (of->at < end && !s->failed) {
    if (pay(s, t, (uint32_t)rank)) return;
    const uint8_t kind = s->program->operation[of->at];
    if (s->in_steps && kind != EB_COMPUTE) set_outside(s, (uint32_t)rank, of, is_of_threads(s, of->at));
    switch (kind) {
      case EB_SEND: post_send(s, of); break;
      case EB_RECEIVE: post_receive(s, of); break;
      case EB_ENTER: enter(s, of, rank); break;
      case EB_WAIT_ALL:
      case EB_WAIT_ANY:
        if (!wait(s, t)) return;
        if (s->in_steps && of->now_s > s->now_s) {
          resume(s, t);
          return;
        }
        break;
      default: end_operation(s, of);
    }
  }
  if (of->at == end && s->in_steps) set_outside(s, (uint32_t)rank, of, end > s->program->first[t] && is_of_threads(s, end - 1));
}

static void handle(simulation *s, eb_event event) {
  thread *of = &s->threads[event.index];
  switch (event.kind) {
    case BEGIN_MESSAGE: begin_message(s, event.index); break;
    case RUN_THREAD: run_thread(s, event.index); break;
    default: /* WAKE_THREAD */
      if (!of->is_waiting || of->turn != event.turn || !try_wait_any(s, of, event.time_s)) break;
      resume(s, event.index);
  }
}

static void run(simulation *s) {
  for (uint32_t t = 0; t < s->program->num_threads; t++) resume(s, t);
  while (!s->failed) {
    while (s->num_ready && !s->failed) {
      const uint32_t t = s->ready[s->ready_first];
      s->ready_first = (s->ready_first + 1) % s->program->num_threads;
      s->num_ready--;
      run_thread(s, t);
    }
    const double event_s = s->events.num ? s->events.heap[0].time_s : INFINITY;
    const double timer_s = s->timers.num ? s->timers.key[s->timers.heap[0]] : INFINITY;
    const double next_s = fmin(event_s, timer_s);
    if (eb_between_is_changed(s->between) && next_s > s->now_s * (1 + TIES)) {
      if (!eb_between_settle(s->between, s->now_s)) s->failed = true;
      continue;
    }
    if (isinf(next_s)) return;
    s->now_s = fmax(s->now_s, next_s);
    if (event_s <= timer_s) handle(s, eb_events_take(&s->events));
    else end_message(s, s->timers.heap[0]);
  }
}

/* Numbers the pairs of a sender and a receiver. */
static bool connect(simulation *s) {
  const size_t ranks = (size_t)s->program->num_ranks + 1, num = (size_t)s->program->num_messages;
  size_t *first = calloc(ranks + 1, sizeof *first), *order = malloc((num + 1) * sizeof *order);
  uint32_t *seen = calloc(ranks, sizeof *seen); /* of each receiver: its connection with the present sender + 1 */
  const bool is_whole = first && order && seen;
  uint32_t num_connections = 0;
  if (is_whole) {
    for (size_t m = 0; m < num; m++) first[s->messages[m].src + 2]++;
    for (size_t rank = 2; rank <= ranks; rank++) first[rank] += first[rank - 1];
    for (size_t m = 0; m < num; m++) order[first[s->messages[m].src + 1]++] = m;
    uint32_t before = 0; /* connections of earlier senders */
    for (size_t i = 0; i < num; i++) {
      message *of = &s->messages[order[i]];
      if (i && of->src != s->messages[order[i - 1]].src) before = num_connections;
      if (seen[of->dst] <= before) seen[of->dst] = ++num_connections;
      of->connection = seen[of->dst] - 1;
    }
    s->connections = calloc((size_t)num_connections + 1, sizeof *s->connections);
  }
  free(first);
  free(order);
  free(seen);
  return is_whole && s->connections;
}

static bool begin(simulation *s) {
  const eb_program *program = s->program;
  const size_t operations = (size_t)program->num_operations + 1, threads = (size_t)program->num_threads + 1;
  const size_t ranks = (size_t)program->num_ranks + 1;
  s->threads = calloc(threads, sizeof *s->threads);
  s->messages = calloc((size_t)program->num_messages + 1, sizeof *s->messages);
  s->collectives = calloc((size_t)program->num_collectives + 1, sizeof *s->collectives);
  s->member_first = calloc((size_t)program->num_collectives + 2, sizeof *s->member_first);
  s->done_s = malloc(operations * sizeof *s->done_s);
  s->waiter = calloc(operations, sizeof *s->waiter);
  s->ready = malloc(threads * sizeof *s->ready);
  s->num_inside = calloc(ranks, sizeof *s->num_inside);
  s->inside_until_s = calloc(ranks, sizeof *s->inside_until_s);
  s->for_receiver = calloc(ranks, sizeof *s->for_receiver);
  s->for_sender = calloc(ranks, sizeof *s->for_sender);
  s->table = (eb_bandwidth){s->network->num_counts, s->network->num_classes, s->network->bandwidth_bytes_per_s};
  s->inside = eb_inside_create(program->num_ranks, s->network->group, s->network->num_groups, &s->table, &s->timers);
  if (!s->inside) return false;
  s->between = eb_between_create(program->num_ranks, s->network->node, s->network->num_nodes, &s->table, &s->timers,
                                 eb_inside_num_pools(s->inside));
  if (!s->between || !s->threads || !s->messages || !s->collectives || !s->member_first || !s->done_s || !s->waiter || !s->ready ||
      !s->num_inside || !s->inside_until_s || !s->for_receiver || !s->for_sender)
    return false;
  int64_t num_entered = 0;
  for (int64_t t = 0; t < program->num_threads; t++) {
    const uint32_t rank = (uint32_t)program->thread_rank[t];
    s->threads[t].at = program->first[t];
    s->num_inside[rank]++;
    for (int64_t k = program->first[t]; k < program->first[t + 1]; k++) {
      message *const of = &s->messages[program->operation[k] <= EB_RECEIVE && program->operation[k] ? program->argument[k] : 0];
      if (program->operation[k] == EB_SEND) of->send = k, of->src = rank;
      if (program->operation[k] == EB_RECEIVE) of->receive = k, of->dst = rank;
      if (program->operation[k] == EB_ENTER) {
        s->member_first[program->argument[k] + 1]++;
        num_entered++;
      }
    }
  }
  s->members = malloc(((size_t)num_entered + 1) * sizeof *s->members);
  if (!s->members || !connect(s)) return false;
  for (int64_t c = 0; c < program->num_collectives; c++) {
    s->member_first[c + 1] += s->member_first[c];
    s->collectives[c] = (collective){.num_members = s->member_first[c + 1] - s->member_first[c], .root_s = NAN};
  }
  for (int64_t k = 0; k < program->num_operations; k++) {
    s->result->end_s[k] = s->done_s[k] = NAN;
    s->result->last_request[k] = NONE;
    if (program->operation[k] != EB_ENTER) continue;
    collective *of = &s->collectives[program->argument[k]];
    s->members[s->member_first[program->argument[k]] + of->num_entered++] = k;
  }
  for (int64_t c = 0; c < program->num_collectives; c++) s->collectives[c].num_entered = 0;
  for (int64_t m = 0; m < program->num_messages; m++) s->result->begun_s[m] = s->result->left_s[m] = NAN;
  for (int64_t c = 0; c < s->network->num_classes; c++) s->in_steps |= s->network->starts_inside[c] != 0;
  return true;
}

static void end(simulation *s) {
  eb_inside_destroy(s->inside);
  eb_between_destroy(s->between);
  eb_timers_free(&s->timers);
  eb_events_free(&s->events);
  free(s->threads);
  free(s->messages);
  free(s->connections);
  free(s->collectives);
  free(s->member_first);
  free(s->members);
  free(s->done_s);
  free(s->waiter);
  free(s->ready);
  free(s->num_inside);
  free(s->inside_until_s);
  free(s->for_receiver);
  free(s->for_sender);
}

int eb_program_simulate(const eb_program *program, const eb_network *network, const eb_simulated *result, int64_t *place,
                        const char **reason) {
  *place = NONE;
  *reason = NULL;
  const int checked = eb_program_check(program, network, place, reason);
  if (checked) return checked;
  simulation s = {.program = program, .network = network, .result = result};
  s.failed = !begin(&s);
  if (!s.failed) run(&s);
  int outcome = s.failed ? -1 : 0;
  for (int64_t t = 0; !outcome && t < program->num_threads; t++)
    if (s.threads[t].at < program->first[t + 1]) {
      *place = s.threads[t].at;
      outcome = EB_DEADLOCK;
    }
  end(&s);
  return outcome;
}
