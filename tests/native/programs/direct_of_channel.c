/* Both sides of a channel's direct transfer in one process: node_direct.c with the files below it, and memory of this program in the place of
 * the node's. Memory that the system cannot copy, failures of either side, and a sender that is freed before all has been copied. Uses no
 * MPI. */
#include <mpi.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "partitioned/node/neighbours.h"
#include "partitioned/wire/node_direct.h"

enum { TOTAL_BYTES = 1 << 20, NUM_SEGMENTS = 2, MAX_LOOKS = 1000 };

static eb_direct_memory node;
static eb_peer self;
static bool has_peer_ended;

#include "node_of_channel.h"

void eb_lock(void) {}
void eb_unlock(void) {}
bool eb_neighbours_are_reached(void) { return true; }
const eb_peer *eb_neighbour(int rank) { return (void)rank, &self; }
bool eb_neighbour_has_ended(int rank) { return (void)rank, has_peer_ended; }

/* A device's memory, as the MPI knows it. */
static char device[TOTAL_BYTES], *device_address;
int PMPI_Unpack(const void *from, int size, int *at, void *to, int count, MPI_Datatype type, MPI_Comm comm) {
  (void)size, (void)at, (void)type, (void)comm;
  memcpy(device + ((char *)to - device_address), from, (size_t)count);
  return MPI_SUCCESS;
}

static int64_t ends[NUM_SEGMENTS + 1] = {0, TOTAL_BYTES / 4, TOTAL_BYTES};
static const eb_segments segments = {.num = NUM_SEGMENTS, .first_byte = ends, .path = EB_PATH_DIRECT};
static char sent[TOTAL_BYTES], received[TOTAL_BYTES];
static const eb_transfer sending = {.is_send = true, .total_bytes = TOTAL_BYTES}, receiving = {.total_bytes = TOTAL_BYTES};
static const eb_buffer sent_from = {.user = sent}, received_in = {.user = received};

static eb_node_direct *take(void) {
  eb_node_direct *const sender = eb_node_direct_take(&sending, &sent_from);
  expect(sender && eb_node_direct_cut(sender, &segments) == MPI_SUCCESS, "no sender");
  memset(received, 0, sizeof received);
  return sender;
}

static eb_node_direct *join(const eb_buffer *buffer) {
  eb_node_direct *const receiver = eb_node_direct_join(&receiving, buffer, 0);
  expect(receiver && eb_node_direct_cut(receiver, &segments) == MPI_SUCCESS, "no receiver");
  return receiver;
}

static bool is_done(eb_node_direct *side) {
  bool done;
  expect(eb_node_direct_test_all(side, &done) == MPI_SUCCESS, "a test fails");
  return done;
}

static void leave_both(eb_node_direct *sender, eb_node_direct *receiver) {
  eb_node_direct_leave(sender);
  eb_node_direct_leave(receiver);
}

/* The receiver is in any other call: the sender copies all, when it is ready or when it waits. */
static void let_sender_copy(bool is_first) {
  eb_node_direct *const sender = take(), *const receiver = join(&received_in);
  eb_node_direct_open(sender, 1);
  if (!is_first) eb_node_direct_open(receiver, 1);
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  expect(is_done(sender) == !is_first, "a sender ends before its receiver has begun");
  if (is_first) eb_node_direct_open(receiver, 1);
  expect(eb_node_direct_has_come(sender) == is_first && is_done(sender), "a sender waits for a receiver in another call");
  expect(memcmp(sent, received, TOTAL_BYTES) == 0, "wrong data");
  expect(eb_node_direct_has_come(receiver) && is_done(receiver) && eb_node_direct_is_done(receiver), "not received");
  leave_both(sender, receiver);
}

/* The receiver waits: the sender goes on with its program. */
static void let_receiver_copy(void) {
  eb_node_direct *const sender = take(), *const receiver = join(&received_in);
  eb_node_direct_open(sender, 1);
  eb_node_direct_open(receiver, 1);
  eb_node_direct_set_waiting(receiver, true);
  expect(!eb_node_direct_has_come(receiver), "something comes from nothing");
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  expect(memcmp(sent, received, TOTAL_BYTES) != 0, "the sender copies what the receiver waits for");
  expect(is_done(receiver) && memcmp(sent, received, TOTAL_BYTES) == 0, "wrong data");
  eb_node_direct_set_waiting(receiver, false);
  expect(is_done(sender), "not sent");
  leave_both(sender, receiver);
}

static void receive_in_device(void) {
  device_address = mmap(NULL, TOTAL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const eb_buffer in_device = {.user = device_address};
  expect(!eb_node_direct_take(&sending, &in_device), "a sender with memory that cannot be copied");
  eb_node_direct *const sender = take(), *const receiver = join(&in_device);
  eb_node_direct_open(sender, 1);
  eb_node_direct_open(receiver, 1);
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  expect(is_done(sender) && is_done(receiver) && memcmp(sent, device, TOTAL_BYTES) == 0, "wrong data in the device");
  leave_both(sender, receiver);
}

/* The system may allow less than it did in MPI_Init. */
static void lose_reach(void) {
  self.mark++;
  expect(!eb_node_direct_take(&sending, &sent_from), "a sender whose peer cannot be reached");
  self.mark--;
  prctl(PR_SET_DUMPABLE, 0);
  expect(!eb_node_direct_take(&sending, &sent_from), "a sender that its peer cannot reach");
  prctl(PR_SET_DUMPABLE, 1);
}

static void let_receiver_fail(void) {
  eb_node_direct *sender = take();
  is_short = true;
  expect(!eb_node_direct_join(&receiving, &received_in, 0), "a receiver without memory");
  is_short = false;
  eb_node_direct_open(sender, 1);
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  expect(is_done(sender), "a sender waits for a receiver that could not join");
  eb_node_direct_leave(sender);
  sender = take();
  eb_node_direct *const receiver = join(&received_in);
  eb_node_direct_open(sender, 1);
  eb_node_direct_open(receiver, 1);
  eb_node_direct_stop(receiver);
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  expect(is_done(sender) && received[0] == 0, "a sender writes into the memory of a receiver that has failed");
  leave_both(sender, receiver);
}

static void let_sender_fail(void) {
  eb_node_direct *const sender = take(), *const receiver = join(&received_in);
  bool done;
  eb_node_direct_open(sender, 1);
  eb_node_direct_open(receiver, 1);
  expect(eb_node_direct_send(sender, 0) == MPI_SUCCESS, "not sent");
  eb_node_direct_stop(sender);
  expect(eb_node_direct_test(receiver, 0, &done) == MPI_SUCCESS && done, "what was sent is not there");
  expect(eb_node_direct_test(receiver, 1, &done) != MPI_SUCCESS && !done, "a receiver waits for a sender that has failed");
  leave_both(sender, receiver);
}

/* All of its start has been received, and it begins no other one. */
static void let_sender_fail_later(void) {
  eb_node_direct *const sender = take(), *const receiver = join(&received_in);
  bool done;
  eb_node_direct_open(sender, 1);
  eb_node_direct_open(receiver, 1);
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  eb_node_direct_stop(sender);
  expect(is_done(receiver) && memcmp(sent, received, TOTAL_BYTES) == 0, "wrong data of a sender that fails afterwards");
  eb_node_direct_open(receiver, 2);
  expect(eb_node_direct_has_come(receiver) && eb_node_direct_test_all(receiver, &done) != MPI_SUCCESS && !done,
         "a receiver waits for a start of a sender that has failed");
  leave_both(sender, receiver);
}

/* The request is freed before its receiver has begun. */
static void free_sender(bool ends) {
  eb_node_direct *const sender = take(), *const receiver = join(&received_in);
  const int num_before = num_left;
  eb_node_direct_open(sender, 1);
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  eb_node_direct_adopt(sender, malloc(1));
  expect(eb_node_direct_progress() == 1 && num_left == num_before, "a sender is left before its data");
  if (ends) has_peer_ended = true;
  else eb_node_direct_open(receiver, 1);
  int num_looks = 0;
  while (eb_node_direct_progress() > 0 && num_looks < MAX_LOOKS) num_looks++;
  expect(num_looks < MAX_LOOKS && num_left == num_before + 1, "a freed sender goes on for ever");
  expect(ends || (is_done(receiver) && memcmp(sent, received, TOTAL_BYTES) == 0), "wrong data of a freed sender");
  eb_node_direct_leave(receiver);
  has_peer_ended = false;
}

/* One of its segments cannot be copied: its receiver may read the other one meanwhile. */
static void fail_freed_sender(void) {
  eb_node_direct *const sender = take(), *const receiver = join(&received_in);
  const int num_before = num_left;
  eb_node_direct_open(sender, 1);
  for (int s = 0; s < NUM_SEGMENTS; s++) expect(eb_node_direct_send(sender, s) == MPI_SUCCESS, "not sent");
  eb_node_direct_adopt(sender, malloc(1));
  char *const missing = mmap(NULL, TOTAL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  eb_direct side;
  eb_direct_begin(&side, &node, false);
  eb_direct_open(&side, 1, missing);
  expect(eb_node_direct_progress() == 0 && num_left == num_before + 1, "a freed sender goes on after an error");
  for (int s = 0; s < NUM_SEGMENTS; s++)
    expect(!eb_direct_is_claimable(&side, 1, s, eb_direct_num_chunks(ends[s + 1] - ends[s])), "memory is read that was freed");
  eb_node_direct_leave(receiver);
}

int main(void) {
  self = eb_peer_self();
  for (int b = 0; b < TOTAL_BYTES; b++) sent[b] = (char)(1 + b % 120);
  let_sender_copy(false);
  let_sender_copy(true);
  let_receiver_copy();
  receive_in_device();
  lose_reach();
  let_receiver_fail();
  let_sender_fail();
  let_sender_fail_later();
  free_sender(false);
  free_sender(true);
  fail_freed_sender();
  return 0;
}
