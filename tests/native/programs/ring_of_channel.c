/* What a receiver's side of a ring does when it fails: node_ring.c and ring.c with memory of this program in the place of the node's, and
 * allocations that may be refused. Uses no MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/domain/domain.h"
#include "partitioned/node/host_memory.h"
#include "partitioned/node/pool.h"
#include "partitioned/wire/node_ring.h"

enum { TOTAL_BYTES = 256, NUM_SEGMENTS = 2 };

static struct {
  _Alignas(64) eb_ring_memory shared;
  char slots[2 * TOTAL_BYTES];
} node;
static bool is_short;

eb_domain_state eb_domain;
eb_world_state eb_world;

void *malloc_or_refuse(size_t num_bytes);
void *malloc_or_refuse(size_t num_bytes) { return is_short ? NULL : calloc(1, num_bytes); }

bool eb_pool_may_have(int64_t bytes) { return bytes <= (int64_t)sizeof node; }
bool eb_pool_has_room(int receiver, int64_t bytes) { return (void)receiver, eb_pool_may_have(bytes); }
eb_pool_block *eb_pool_take(int receiver, int64_t bytes) { return (void)receiver, (void)bytes, (eb_pool_block *)&node; }
int64_t eb_pool_offset(const eb_pool_block *block) { return (void)block, 0; }
void eb_pool_leave(eb_pool_block *block) { (void)block; }
void eb_pool_return(eb_pool_block *block) { (void)block; }
void *eb_pool_at(int64_t offset, int64_t bytes) { return offset == 0 && eb_pool_may_have(bytes) ? &node : NULL; }
void eb_pool_touch(const void *block_memory, int64_t bytes) { (void)block_memory, (void)bytes; }
bool eb_memory_is_readable(const void *begin, size_t num_bytes) { return (void)begin, (void)num_bytes, true; }
char *eb_buffer_staging(const eb_buffer *buffer) { return buffer->staging; }
eb_message_data eb_buffer_data(const eb_buffer *buffer, int64_t first_byte, int64_t num_bytes) {
  return (eb_message_data){buffer->user + first_byte, (int)num_bytes, MPI_BYTE};
}
int PMPI_Unpack(const void *from, int size, int *at, void *to, int count, MPI_Datatype type, MPI_Comm comm) {
  return (void)from, (void)size, (void)at, (void)to, (void)count, (void)type, (void)comm, MPI_ERR_INTERN;
}

static int64_t ends[NUM_SEGMENTS + 1] = {0, TOTAL_BYTES / 2, TOTAL_BYTES};
static const eb_segments segments = {.num = NUM_SEGMENTS, .first_byte = ends, .path = EB_PATH_RING};
static char sent[TOTAL_BYTES] = "sent", received[TOTAL_BYTES];
static const eb_transfer sending = {.is_send = true, .total_bytes = TOTAL_BYTES}, receiving = {.total_bytes = TOTAL_BYTES};
static const eb_buffer sent_from = {.user = sent}, received_in = {.user = received};

static void expect(bool is_so, const char *what) {
  if (is_so) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

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
