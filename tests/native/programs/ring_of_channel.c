/* What a receiver's side of a ring does when it fails: node_ring.c and ring.c with memory of this program in the place of the node's, and
 * allocations that may be refused. Uses no MPI. */
#include <mpi.h>
#include <string.h>

#include "partitioned/node/host_memory.h"
#include "partitioned/wire/node_ring.h"

enum { TOTAL_BYTES = 256, NUM_SEGMENTS = 2 };

static struct {
  _Alignas(64) eb_ring_memory shared;
  char slots[2 * TOTAL_BYTES];
} node;

#include "node_of_channel.h"

bool eb_memory_is_readable(const void *begin, size_t num_bytes) { return (void)begin, (void)num_bytes, true; }
int PMPI_Unpack(const void *from, int size, int *at, void *to, int count, MPI_Datatype type, MPI_Comm comm) {
  return (void)from, (void)size, (void)at, (void)to, (void)count, (void)type, (void)comm, MPI_ERR_INTERN;
}

static int64_t ends[NUM_SEGMENTS + 1] = {0, TOTAL_BYTES / 2, TOTAL_BYTES};
static const eb_segments segments = {.num = NUM_SEGMENTS, .first_byte = ends, .path = EB_PATH_RING};
static char sent[TOTAL_BYTES] = "sent", received[TOTAL_BYTES];
static const eb_transfer sending = {.is_send = true, .total_bytes = TOTAL_BYTES}, receiving = {.total_bytes = TOTAL_BYTES};
static const eb_buffer sent_from = {.user = sent}, received_in = {.user = received};

static eb_node_ring *take(void) {
  eb_node_ring *const sender = eb_node_ring_take(&sending, &sent_from);
  expect(sender && eb_node_ring_cut(sender, &segments) == MPI_SUCCESS, "no sender");
  return sender;
}

static eb_node_ring *join(void) {
  eb_node_ring *const receiver = eb_node_ring_join(&receiving, &received_in, 0);
  expect(receiver && eb_node_ring_cut(receiver, &segments) == MPI_SUCCESS, "no receiver");
  return receiver;
}

static void send_all(eb_node_ring *sender, uint64_t start) {
  eb_node_ring_open(sender, start);
  for (int s = 0; s < NUM_SEGMENTS; s++) eb_node_ring_send(sender, s);
}

static void let_failed_receiver_leave_once(void) {
  eb_node_ring *const first_sender = take(), *const failed = join();
  eb_node_ring_refuse(failed);
  eb_node_ring_leave(first_sender);
  eb_node_ring *const sender = take(), *const receiver = join(); /* of another channel, in the same memory */
  send_all(sender, 1);
  eb_node_ring_refuse(failed);
  eb_node_ring_leave(failed);
  expect(!eb_node_ring_is_free(sender, 3), "a receiver that has failed frees the slot of another channel");
  eb_node_ring_leave(receiver);
  expect(eb_node_ring_is_free(sender, 3), "a slot is not free that no one reads");
  eb_node_ring_leave(sender);
}

static void let_receiver_fail_to_join(void) {
  eb_node_ring *const sender = take();
  is_short = true;
  expect(!eb_node_ring_join(&receiving, &received_in, 0), "a receiver without memory");
  is_short = false;
  send_all(sender, 1);
  expect(eb_node_ring_is_free(sender, 3), "a sender waits for a receiver that could not join");
  eb_node_ring_leave(sender);
}

static void receive_all(void) {
  bool done = false;
  eb_node_ring *const sender = take(), *const receiver = join();
  eb_node_ring_open(receiver, 1);
  expect(!eb_node_ring_has_come(receiver) && !eb_node_ring_is_read(receiver), "data before it is sent");
  send_all(sender, 1);
  expect(eb_node_ring_has_come(receiver) && !eb_node_ring_is_read(receiver), "data does not come");
  expect(eb_node_ring_test_all(receiver, &done) == MPI_SUCCESS && done && memcmp(sent, received, TOTAL_BYTES) == 0, "wrong data");
  expect(!eb_node_ring_has_come(receiver) && eb_node_ring_is_read(receiver), "a thread that waits for a message does not yield");
  eb_node_ring_leave(receiver);
  eb_node_ring_leave(sender);
}

int main(void) {
  let_failed_receiver_leave_once();
  let_receiver_fail_to_join();
  receive_all();
  return 0;
}
