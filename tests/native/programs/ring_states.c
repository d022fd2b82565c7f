/* All orders in which a sender and a receiver can use a ring: ring_states STARTS [RULE]
 *
 * The steps are the ring's own functions: a chunk is copied into the slot by whichever thread comes first, the sender's start ends, the
 * receiver looks at any segment. Starts differ in their segments, and some travel as messages. Fails if the receiver gets a byte that is
 * not of its start, or if neither side can go on. With the name of a rule, the program breaks it, and must fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/node/ring.h"

enum { TOTAL_BYTES = 4096, MAX_SEGMENTS = 2, MAX_STATES = 400000, NUM_SLOTS = 1 << 20, NUM_CUTS = 3 };

/* Ends of segments: of one chunk, or two. */
static const int cuts[NUM_CUTS][MAX_SEGMENTS + 1] = {{0, 2048, TOTAL_BYTES}, {0, TOTAL_BYTES, TOTAL_BYTES}, {0, 1024, TOTAL_BYTES}};
static const int num_segments[NUM_CUTS] = {2, 1, 2};

/* Segments and chunks end at multiples of a unit, whose bytes are all of one start. */
enum { UNIT_BYTES = 512, NUM_UNITS = TOTAL_BYTES / UNIT_BYTES };

typedef struct {
  uint64_t consumed, filled[MAX_SEGMENTS], last[2];
  unsigned char slots[2][NUM_UNITS];
  int sender_start, receiver_start, num_filled[MAX_SEGMENTS], num_copied[MAX_SEGMENTS];
  bool is_sending, is_receiving;
} state;

static state states[MAX_STATES];
static int num_states, slot_of[NUM_SLOTS], num_starts;
static const char *broken = "";
static char *memory;

static bool breaks(const char *rule) { return strcmp(broken, rule) == 0; }
static bool is_message(int start) { return start % 4 == 0; }
static int cut_of(int start) { return start % NUM_CUTS; }
static int bytes_of(int start, int segment) { return cuts[cut_of(start)][segment + 1] - cuts[cut_of(start)][segment]; }
static int num_chunks_of(int start, int segment) { return eb_ring_num_chunks(bytes_of(start, segment)); }

static eb_ring ring_of(const state *at) {
  eb_ring ring;
  eb_ring_begin(&ring, memory, TOTAL_BYTES);
  eb_ring_format(memory);
  atomic_store(&ring.shared->consumed, at->consumed);
  for (int s = 0; s < MAX_SEGMENTS; s++) atomic_store(&ring.shared->filled[s], at->filled[s]);
  for (int k = 0; k < 2; k++) {
    ring.last[k] = at->last[k];
    for (int u = 0; u < NUM_UNITS; u++) memset(ring.slots + k * ring.slot_bytes + u * UNIT_BYTES, at->slots[k][u], UNIT_BYTES);
  }
  return ring;
}

static void read_back(const eb_ring *ring, state *at) {
  at->consumed = atomic_load(&ring->shared->consumed);
  for (int s = 0; s < MAX_SEGMENTS; s++) at->filled[s] = atomic_load(&ring->shared->filled[s]);
  for (int k = 0; k < 2; k++) {
    at->last[k] = ring->last[k];
    for (int u = 0; u < NUM_UNITS; u++) at->slots[k][u] = (unsigned char)ring->slots[k * ring->slot_bytes + u * UNIT_BYTES];
  }
}

static void add(const state *made) {
  uint64_t hash = 14695981039346656037U;
  for (size_t b = 0; b < sizeof *made; b++) hash = (hash ^ ((const unsigned char *)made)[b]) * 1099511628211U;
  int slot = (int)(hash % NUM_SLOTS);
  for (; slot_of[slot]; slot = (slot + 1) % NUM_SLOTS)
    if (memcmp(&states[slot_of[slot] - 1], made, sizeof *made) == 0) return;
  if (num_states == MAX_STATES) exit(2);
  states[num_states] = *made;
  slot_of[slot] = ++num_states;
}

static void fail(const char *why, const state *at) {
  fprintf(stderr, "%s: sender in start %d, receiver in start %d\n", why, at->sender_start, at->receiver_start);
  exit(1);
}

static bool all_filled(const state *at) {
  for (int s = 0; s < num_segments[cut_of(at->sender_start)]; s++)
    if (at->num_filled[s] < num_chunks_of(at->sender_start, s)) return false;
  return true;
}

/* MPI_Start, MPI_Pready of any partition, and the end of MPI_Wait. Returns the number of steps that were possible. */
static int step_sender(const state *from) {
  int num = 0;
  state next = *from;
  eb_ring ring = ring_of(from);
  if (!from->is_sending) {
    if (from->sender_start == num_starts) return 0;
    next.sender_start++;
    next.is_sending = true;
    memset(next.num_filled, 0, sizeof next.num_filled);
    if (!is_message(next.sender_start)) eb_ring_open(&ring, (uint64_t)next.sender_start);
    read_back(&ring, &next);
    add(&next);
    return 1;
  }
  const int start = from->sender_start;
  if (is_message(start) || all_filled(from)) {
    if (!breaks("wait") && !(breaks("message") && is_message(start)) && !eb_ring_is_free(&ring, (uint64_t)start + 1)) return 0;
    next.is_sending = false;
    add(&next);
    return 1;
  }
  for (int s = 0; s < num_segments[cut_of(start)]; s++) {
    char data[TOTAL_BYTES];
    if (from->num_filled[s] == num_chunks_of(start, s)) continue;
    memset(data, start, sizeof data);
    next = *from;
    ring = ring_of(from);
    eb_ring_fill_chunk(&ring, (uint64_t)start, s, cuts[cut_of(start)][s], data, bytes_of(start, s), next.num_filled[s]++);
    read_back(&ring, &next);
    add(&next);
    num++;
  }
  return num;
}

static void copy_out(const eb_ring *ring, const state *at, int segment, int num) {
  const int start = at->receiver_start, chunk = (int)eb_ring_chunk_bytes(bytes_of(start, segment));
  int end = num * chunk;
  if (end > bytes_of(start, segment)) end = bytes_of(start, segment);
  const char *const from = eb_ring_at(ring, (uint64_t)start, cuts[cut_of(start)][segment]);
  for (int b = at->num_copied[segment] * chunk; b < end; b++)
    if (from[b] != start) fail("the receiver reads what is not of its start", at);
}

/* MPI_Start, and a test of any segment: the start ends with the last one. A start of messages ends when the sender has sent it. */
static int step_receiver(const state *from) {
  int num = 0, num_left = 0;
  state next = *from;
  const int start = from->receiver_start;
  if (!from->is_receiving) {
    if (start == num_starts) return 0;
    next.receiver_start++;
    next.is_receiving = true;
    memset(next.num_copied, 0, sizeof next.num_copied);
    add(&next);
    return 1;
  }
  if (is_message(start)) {
    if (from->sender_start < start) return 0;
    next.is_receiving = false;
    add(&next);
    return 1;
  }
  for (int s = 0; s < num_segments[cut_of(start)]; s++) num_left += num_chunks_of(start, s) - from->num_copied[s];
  for (int s = 0; s < num_segments[cut_of(start)]; s++) {
    const eb_ring ring = ring_of(from);
    const int num_chunks = num_chunks_of(start, s);
    const int come = breaks("flag") ? num_chunks : eb_ring_num_filled(&ring, (uint64_t)start, s, num_chunks);
    if (come <= from->num_copied[s]) continue;
    next = *from;
    copy_out(&ring, from, s, come);
    next.num_copied[s] = come;
    if (num_left == come - from->num_copied[s] || (breaks("consume") && num_left > 1)) {
      eb_ring_consume(&ring, (uint64_t)start);
      read_back(&ring, &next);
    }
    next.is_receiving = num_left > come - from->num_copied[s];
    add(&next);
    num++;
  }
  return num;
}

int main(int num_arguments, char **arguments) {
  state first;
  num_starts = atoi(arguments[1]);
  if (num_arguments > 2) broken = arguments[2];
  memory = aligned_alloc(64, (size_t)eb_ring_bytes(TOTAL_BYTES));
  memset(&first, 0, sizeof first);
  add(&first);
  for (int at = 0; at < num_states; at++) {
    const state from = states[at];
    const int num = step_sender(&from) + step_receiver(&from);
    const bool has_ended = from.sender_start == num_starts && from.receiver_start == num_starts && !from.is_sending &&
                           !from.is_receiving;
    if (num == 0 && !has_ended) fail("neither side can go on", &from);
  }
  printf("%d states\n", num_states);
  return 0;
}
