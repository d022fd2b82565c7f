/* All orders in which a sender and a receiver can use a direct transfer: direct_states STARTS [RULE]
 *
 * The steps are the library's own functions: a segment becomes ready, the receiver begins a start, either side claims a chunk, copies it,
 * and counts it as done, or sees that a segment is done; at any time one side may fail. Starts differ in their segments, and some
 * travel as messages. Fails if a chunk is copied twice, or before it is ready, or into memory that the receiver has not given, or no more;
 * if a side ends a start before all is copied; or if neither side can go on. With the name of a rule, the program breaks it, and must
 * fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/node/direct.h"

enum { MAX_SEGMENTS = 2, MAX_CHUNKS = 2, MAX_STATES = 4000000, NUM_SLOTS = 1 << 23, NUM_CUTS = 3, NONE = -1 };
enum { SENDER, WAITING_SENDER, RECEIVER, NUM_COPIERS }; /* threads that copy: one that makes a segment ready, and those that wait */

/* Chunks of the segments of each cut; 0: there is no such segment. */
static const int chunks_of[NUM_CUTS][MAX_SEGMENTS] = {{1, 2}, {2, 0}, {1, 1}};

typedef struct {
  signed char segment, chunk; /* NONE: it copies nothing */
} copying;

typedef struct {
  uint64_t begun, claimed[MAX_SEGMENTS], done[MAX_SEGMENTS];
  bool is_left, is_refused, has_sender_failed;
  signed char sender_start, receiver_start;
  bool is_sending, is_receiving, is_failed[2], is_stopping[2], is_stopped[2]; /* of the receiver, and of the sender */
  bool is_ready[MAX_SEGMENTS], is_known[MAX_SEGMENTS]; /* of the sender's start; of the receiver's */
  signed char num_copied[MAX_SEGMENTS][MAX_CHUNKS]; /* of the sender's start */
  copying copies[NUM_COPIERS];
} state;

static state *states;
static int num_states, *slot_of, num_starts;
static const char *broken = "";
static eb_direct_memory *memory;
static eb_direct sender, receiver;
static char buffer[64];

static bool breaks(const char *rule) { return strcmp(broken, rule) == 0; }
static bool is_message(int start) { return start % 4 == 1; }
static int num_chunks(int start, int segment) { return chunks_of[start % NUM_CUTS][segment]; }

static void load(const state *from) {
  atomic_store(&memory->begun, from->begun);
  atomic_store(&memory->header.is_left, from->is_left);
  atomic_store(&memory->is_refused, from->is_refused);
  atomic_store(&memory->has_sender_failed, from->has_sender_failed);
  for (int s = 0; s < MAX_SEGMENTS; s++) {
    atomic_store(&memory->segments[s].claimed, from->claimed[s]);
    atomic_store(&memory->segments[s].done, from->done[s]);
  }
  eb_direct_begin(&sender, memory, true);
  eb_direct_begin(&receiver, memory, false);
  receiver.has_left = from->is_left;
}

static void add(state made) {
  uint64_t hash = 14695981039346656037U;
  made.begun = atomic_load(&memory->begun);
  made.is_left = atomic_load(&memory->header.is_left);
  made.is_refused = atomic_load(&memory->is_refused);
  made.has_sender_failed = atomic_load(&memory->has_sender_failed);
  for (int s = 0; s < MAX_SEGMENTS; s++) {
    made.claimed[s] = atomic_load(&memory->segments[s].claimed);
    made.done[s] = atomic_load(&memory->segments[s].done);
  }
  for (size_t b = 0; b < sizeof made; b++) hash = (hash ^ ((const unsigned char *)&made)[b]) * 1099511628211U;
  int slot = (int)(hash % NUM_SLOTS);
  for (; slot_of[slot]; slot = (slot + 1) % NUM_SLOTS)
    if (memcmp(&states[slot_of[slot] - 1], &made, sizeof made) == 0) return;
  if (num_states == MAX_STATES) exit(2);
  memcpy(&states[num_states], &made, sizeof made);
  slot_of[slot] = ++num_states;
}

static void fail(const char *why, const state *at) {
  fprintf(stderr, "%s: sender in start %d, receiver in start %d\n", why, at->sender_start, at->receiver_start);
  exit(1);
}

static bool is_copying(const state *at, int copier) { return at->copies[copier].segment != NONE; }

/* A copier claims a chunk, or ends its copy. */
static int step_copier(const state *from, int copier, int segment) {
  const bool is_send = copier != RECEIVER;
  eb_direct *const side = is_send ? &sender : &receiver;
  const int start = is_send ? from->sender_start : from->receiver_start;
  state next = *from;
  load(from);
  if (is_copying(from, copier)) {
    if (from->copies[copier].segment != segment) return 0;
    /* What is copied is of both sides' start, and the receiver's memory is its own. */
    if (from->sender_start != from->receiver_start || !from->is_sending) fail("a chunk is copied that is not of both starts", from);
    if (!from->is_receiving) fail("a chunk is copied into memory that was given back", from);
    if (!from->is_ready[segment]) fail("a chunk is copied before it is ready", from);
    if (next.num_copied[segment][from->copies[copier].chunk]++) fail("a chunk is copied twice", from);
    eb_direct_finish(side, segment, true);
    next.copies[copier] = (copying){NONE, NONE};
    add(next);
    return 1;
  }
  if (num_chunks(start, segment) == 0) return 0;
  if (is_send && !from->is_ready[segment]) return 0; /* it does not look before */
  const int chunk = breaks("claim") && eb_direct_is_claimable(side, (uint64_t)start, segment, num_chunks(start, segment))
                        ? 0
                        : eb_direct_claim(side, (uint64_t)start, segment, num_chunks(start, segment));
  if (chunk < 0) return 0;
  next.copies[copier] = (copying){(signed char)segment, (signed char)chunk};
  add(next);
  return 1;
}

static int step_sender(const state *from) {
  int num = 0, num_open = 0;
  state next = *from;
  load(from);
  if (from->is_failed[1]) return 0;
  if (!from->is_sending) {
    if (from->sender_start == num_starts) return 0;
    next.sender_start++;
    next.is_sending = true;
    memset(next.is_ready, 0, sizeof next.is_ready);
    memset(next.num_copied, 0, sizeof next.num_copied);
    add(next);
    return 1;
  }
  const int start = from->sender_start;
  for (int s = 0; s < MAX_SEGMENTS && !is_message(start); s++) {
    const int chunks = num_chunks(start, s);
    if (chunks == 0) continue;
    load(from);
    if (!from->is_ready[s]) {
      next = *from;
      num_open++;
      if (is_copying(from, SENDER)) continue; /* this thread copies the one before */
      eb_direct_make_ready(&sender, (uint64_t)start, s, buffer);
      if (breaks("begun")) atomic_store(&memory->begun, (uint64_t)start);
      next.is_ready[s] = true;
      add(next);
      num++;
      continue;
    }
    num += step_copier(from, SENDER, s);
    load(from);
    if (!breaks("done") && eb_direct_state_of(&sender, (uint64_t)start, s, chunks) == EB_DIRECT_OPEN) num_open++;
  }
  bool all_ready = true;
  for (int s = 0; s < MAX_SEGMENTS; s++) all_ready = all_ready && (from->is_ready[s] || num_chunks(start, s) == 0);
  for (int s = 0; s < MAX_SEGMENTS && !is_message(start) && all_ready; s++) num += step_copier(from, WAITING_SENDER, s);
  if (num_open > 0 || is_copying(from, SENDER) || is_copying(from, WAITING_SENDER)) return num;
  for (int s = 0; s < MAX_SEGMENTS && !is_message(start); s++)
    for (int c = 0; c < num_chunks(start, s); c++)
      if (!from->num_copied[s][c] && !from->is_failed[0]) fail("the sender ends before all is copied", from);
  load(from);
  next = *from;
  next.is_sending = false;
  add(next);
  return num + 1;
}

/* One side fails. Its memory is given back once nothing is copied any more. */
static int step_failing(const state *from, bool is_send) {
  eb_direct *const side = is_send ? &sender : &receiver;
  const int start = is_send ? from->sender_start : from->receiver_start;
  state next = *from;
  load(from);
  if (!from->is_stopping[is_send]) {
    const bool is_open = is_send || (from->is_receiving && !is_message(start)); /* a sender may also fail between two starts */
    if (from->is_failed[0] || from->is_failed[1] || !is_open) return 0;
    if (is_send ? is_copying(from, SENDER) || is_copying(from, WAITING_SENDER) : is_copying(from, RECEIVER)) return 0;
    if (breaks("leave")) eb_direct_leave(side);
    else eb_direct_refuse(side);
    next.is_failed[is_send] = next.is_stopping[is_send] = true;
    add(next);
    return 1;
  }
  /* It may be another transfer's by now. */
  if (!is_send && from->is_left) fail("the receiver uses memory that it has left", from);
  if (!from->is_stopped[is_send]) {
    for (int s = 0; s < MAX_SEGMENTS && !breaks("stop") && start > 0 && !is_message(start); s++)
      if (num_chunks(start, s)) eb_direct_stop(side, (uint64_t)start, s, num_chunks(start, s));
    next.is_stopped[is_send] = true;
    add(next);
    return 1;
  }
  for (int s = 0; s < MAX_SEGMENTS && !breaks("idle") && start > 0 && !is_message(start); s++)
    if (num_chunks(start, s) && !eb_direct_is_idle(side, (uint64_t)start, s)) return 0;
  if (!breaks("failed")) eb_direct_set_failed(side);
  eb_direct_leave(side);
  next.is_stopping[is_send] = false;
  if (is_send) next.is_sending = false;
  else next.is_receiving = false;
  add(next);
  return 1;
}

static int step_receiver(const state *from) {
  int num = 0;
  bool all = true;
  state next = *from;
  const int start = from->receiver_start;
  load(from);
  if (from->is_failed[0]) return 0; /* it begins nothing more */
  if (!from->is_receiving) {
    if (start == num_starts) return 0;
    next.receiver_start++;
    next.is_receiving = true;
    memset(next.is_known, 0, sizeof next.is_known);
    if (!is_message(next.receiver_start)) eb_direct_open(&receiver, (uint64_t)next.receiver_start, buffer);
    add(next);
    return 1;
  }
  if (is_message(start)) {
    if (from->sender_start < start) return 0;
    next.is_receiving = false;
    add(next);
    return 1;
  }
  for (int s = 0; s < MAX_SEGMENTS; s++) {
    if (num_chunks(start, s) == 0) continue;
    num += step_copier(from, RECEIVER, s);
    load(from);
    all = all && from->is_known[s];
    if (from->is_known[s] || is_copying(from, RECEIVER)) continue;
    const eb_direct_state seen = eb_direct_state_of(&receiver, (uint64_t)start, s, num_chunks(start, s));
    if (seen == EB_DIRECT_OPEN) continue;
    next = *from;
    next.is_known[s] = true;
    if (seen == EB_DIRECT_FAILED) {
      if (!from->is_failed[1]) fail("the receiver fails because of nothing", from);
      next.is_failed[0] = true;
      next.is_receiving = false;
      add(next);
      num++;
      continue;
    }
    for (int c = 0; c < num_chunks(start, s) && from->sender_start == start; c++)
      if (!from->num_copied[s][c]) fail("the receiver takes for done what is not copied", from);
    add(next);
    num++;
  }
  if (!all || is_copying(from, RECEIVER)) return num;
  load(from);
  next = *from;
  next.is_receiving = false;
  add(next);
  return num + 1;
}

int main(int num_arguments, char **arguments) {
  state first;
  num_starts = atoi(arguments[1]);
  if (num_arguments > 2) broken = arguments[2];
  memory = aligned_alloc(64, sizeof *memory);
  states = malloc((size_t)MAX_STATES * sizeof *states);
  slot_of = calloc(NUM_SLOTS, sizeof *slot_of);
  eb_direct_format(memory);
  memset(&first, 0, sizeof first);
  for (int k = 0; k < NUM_COPIERS; k++) first.copies[k] = (copying){NONE, NONE};
  add(first);
  for (int at = 0; at < num_states; at++) {
    state from;
    memcpy(&from, &states[at], sizeof from);
    const int num = step_sender(&from) + step_receiver(&from) + step_failing(&from, false) + step_failing(&from, true);
    const bool has_sent = from.is_failed[1] || from.sender_start == num_starts,
               has_received = from.is_failed[0] || from.receiver_start == num_starts;
    const bool has_ended = !from.is_sending && !from.is_receiving && has_sent && has_received;
    /* Of a side that has failed: as it would without this library. */
    const bool awaits_message = (from.is_failed[0] && is_message(from.sender_start)) ||
                                (from.is_failed[1] && is_message(from.receiver_start));
    if (num == 0 && !has_ended && !awaits_message) fail("neither side can go on", &from);
  }
  printf("%d states\n", num_states);
  return 0;
}
