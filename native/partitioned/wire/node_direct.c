/* Copies segments between the memory of two ranks, and ends such transfers. */
#include "partitioned/wire/node_direct.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/domain/domain.h"
#include "partitioned/node/direct_copy.h"
#include "partitioned/node/neighbours.h"
#include "partitioned/node/pool.h"

/* Of a test, so that the MPI is called meanwhile. */
enum { MAX_CHUNKS_OF_A_TEST = 16 };
/* So many looks at what was adopted after which it is asked whether the peers are there. */
enum { LOOKS_FOR_PEER = 256 };

struct eb_node_direct {
  eb_node_direct *next; /* of those that were adopted */
  void *memory;         /* of such a one, or NULL */
  const eb_buffer *buffer;
  int peer;
  const eb_peer *process; /* the peer's */
  int64_t total_bytes, offset;
  eb_pool_block *block; /* a sender's */
  eb_direct direct;
  char *landing; /* of a receiver whose memory the system cannot copy to: from here the MPI copies it there */
  uint64_t start;
  bool is_open; /* in a start, which may be complete */
  char *bytes;  /* the program's, or the landing, of this start */
  int num, num_left; /* segments, and those that are not known to be done */
  int64_t first_byte[EB_NODE_MAX_SEGMENTS + 1];
  bool is_done[EB_NODE_MAX_SEGMENTS];
};

static eb_node_direct *adopted; /* under eb_lock */

bool eb_node_direct_is_possible(const eb_transfer *transfer) {
  return transfer->total_bytes > 0 && !eb_transfer_is_null(transfer) && !eb_transfer_is_inter_node(transfer) &&
         eb_neighbours_are_reached() && eb_pool_may_have(sizeof(eb_direct_memory));
}

bool eb_node_direct_has_room(const eb_transfer *transfer) {
  return eb_node_direct_is_possible(transfer) && eb_pool_has_room(transfer->wire_peer, sizeof(eb_direct_memory));
}

/* A type with gaps is packed into memory of the library. */
static bool is_plain(const eb_transfer *transfer, const eb_buffer *buffer) {
  return eb_buffer_staging(buffer) || eb_peer_memory_is_plain(eb_buffer_data(buffer, 0, 1).address, (size_t)transfer->total_bytes);
}

static eb_node_direct *make(const eb_transfer *transfer, const eb_buffer *buffer, int64_t offset) {
  void *const memory = eb_pool_at(offset, sizeof(eb_direct_memory));
  eb_node_direct *const made = memory ? malloc(sizeof *made) : NULL;
  if (!made) return NULL;
  memset(made, 0, sizeof *made);
  made->buffer = buffer;
  made->peer = transfer->wire_peer;
  made->process = eb_neighbour(made->peer);
  made->total_bytes = transfer->total_bytes;
  made->offset = offset;
  eb_direct_begin(&made->direct, memory, transfer->is_send);
  return made;
}

/* As in MPI_Init? The program may have changed since what the system allows it, or others. */
static bool is_reached(int peer) { return eb_peer_self_is_open() && eb_peer_try(eb_neighbour(peer)) == 0; }

eb_node_direct *eb_node_direct_take(const eb_transfer *transfer, const eb_buffer *buffer) {
  if (!eb_node_direct_is_possible(transfer) || !is_reached(transfer->wire_peer) || !is_plain(transfer, buffer)) return NULL;
  eb_pool_block *const block = eb_pool_take(transfer->wire_peer, sizeof(eb_direct_memory));
  if (!block) return NULL;
  eb_node_direct *const made = make(transfer, buffer, eb_pool_offset(block));
  if (!made) {
    eb_pool_return(block);
    return NULL;
  }
  made->block = block;
  eb_direct_format(made->direct.shared);
  return made;
}

int64_t eb_node_direct_offset(const eb_node_direct *own) { return own->offset; }

void eb_node_direct_refuse_at(int64_t offset) {
  eb_direct direct;
  void *const memory = eb_pool_at(offset, sizeof(eb_direct_memory));
  if (!memory) return;
  eb_direct_begin(&direct, memory, false);
  eb_direct_leave(&direct);
}

eb_node_direct *eb_node_direct_join(const eb_transfer *transfer, const eb_buffer *buffer, int64_t offset) {
  eb_node_direct *const made = eb_neighbours_are_reached() ? make(transfer, buffer, offset) : NULL;
  const bool needs_landing = made && !is_plain(transfer, buffer);
  if (needs_landing) made->landing = malloc((size_t)transfer->total_bytes);
  if (made && (!needs_landing || made->landing)) return made;
  free(made);
  eb_node_direct_refuse_at(offset); /* its sender would wait for it */
  return NULL;
}

void eb_node_direct_leave(eb_node_direct *own) {
  if (!own) return;
  if (own->direct.is_send) eb_pool_leave(own->block);
  else eb_direct_leave(&own->direct);
  free(own->landing);
  free(own->memory);
  free(own);
}

static int64_t bytes_of(const eb_node_direct *own, int segment) { return own->first_byte[segment + 1] - own->first_byte[segment]; }

static int num_chunks_of(const eb_node_direct *own, int segment) { return eb_direct_num_chunks(bytes_of(own, segment)); }

void eb_node_direct_stop(eb_node_direct *own) {
  eb_direct_refuse(&own->direct);
  for (int s = 0; own->is_open && s < own->num; s++) eb_direct_stop(&own->direct, own->start, s, num_chunks_of(own, s));
  for (int s = 0; own->is_open && s < own->num; s++)
    while (!eb_direct_is_idle(&own->direct, own->start, s) && !eb_neighbour_has_ended(own->peer)) sched_yield();
  own->is_open = false;
  eb_direct_set_failed(&own->direct);
  eb_direct_leave(&own->direct); /* last: the memory may be another transfer's now */
}

int eb_node_direct_cut(eb_node_direct *own, const eb_segments *segments) {
  if (segments->num > EB_NODE_MAX_SEGMENTS) return MPI_ERR_INTERN;
  own->num = segments->num;
  memcpy(own->first_byte, segments->first_byte, ((size_t)own->num + 1) * sizeof *own->first_byte);
  return MPI_SUCCESS;
}

void eb_node_direct_open(eb_node_direct *own, uint64_t start) {
  own->start = start;
  own->is_open = true;
  own->bytes = own->landing ? own->landing : eb_buffer_data(own->buffer, 0, 1).address;
  own->num_left = own->num;
  memset(own->is_done, 0, (size_t)own->num * sizeof own->is_done[0]);
  if (!own->direct.is_send) eb_direct_open(&own->direct, start, own->bytes);
}

/* Copies chunks of a segment, up to so many; returns how many. */
static int copy_chunks(eb_node_direct *own, int segment, int most) {
  const eb_direct_part part = {own->start, segment, own->bytes, own->first_byte[segment], bytes_of(own, segment)};
  return eb_direct_copy(&own->direct, own->process, &part, most);
}

static eb_direct_state state_of(const eb_node_direct *own, int segment) {
  return eb_direct_state_of(&own->direct, own->start, segment, num_chunks_of(own, segment));
}

int eb_node_direct_send(eb_node_direct *own, int segment) {
  eb_direct_make_ready(&own->direct, own->start, segment, own->bytes);
  if (eb_direct_is_awaited(&own->direct, own->start)) return MPI_SUCCESS;
  (void)copy_chunks(own, segment, num_chunks_of(own, segment));
  return state_of(own, segment) == EB_DIRECT_FAILED ? MPI_ERR_OTHER : MPI_SUCCESS;
}

void eb_node_direct_set_waiting(eb_node_direct *own, bool is_waiting) {
  if (!own->direct.is_send) eb_direct_set_waiting(&own->direct, is_waiting);
}

/* The MPI knows what memory is a device's. */
static int copy_from_landing(const eb_node_direct *own, int segment) {
  const eb_message_data data = eb_buffer_data(own->buffer, own->first_byte[segment], bytes_of(own, segment));
  int at = 0;
  return PMPI_Unpack(own->landing + own->first_byte[segment], data.count, &at, data.address, data.count, MPI_BYTE, eb_domain.comm);
}

static int test(eb_node_direct *own, int segment, int *most) {
  if (own->is_done[segment]) return MPI_SUCCESS;
  *most -= copy_chunks(own, segment, *most);
  const eb_direct_state state = state_of(own, segment);
  if (state != EB_DIRECT_DONE) return state == EB_DIRECT_FAILED ? MPI_ERR_OTHER : MPI_SUCCESS;
  own->is_done[segment] = true;
  own->num_left--;
  return own->landing ? copy_from_landing(own, segment) : MPI_SUCCESS;
}

int eb_node_direct_test(eb_node_direct *own, int segment, bool *done) {
  int most = MAX_CHUNKS_OF_A_TEST;
  const int rc = test(own, segment, &most);
  *done = own->is_done[segment];
  return rc;
}

int eb_node_direct_test_all(eb_node_direct *own, bool *done) {
  int rc = MPI_SUCCESS, most = MAX_CHUNKS_OF_A_TEST;
  for (int s = 0; rc == MPI_SUCCESS && s < own->num && most > 0; s++) rc = test(own, s, &most);
  *done = own->num_left == 0;
  return rc;
}

bool eb_node_direct_has_come(const eb_node_direct *own) {
  for (int s = 0; s < own->num; s++) {
    if (own->is_done[s]) continue;
    if (eb_direct_is_claimable(&own->direct, own->start, s, num_chunks_of(own, s)) || state_of(own, s) != EB_DIRECT_OPEN)
      return true;
  }
  return false;
}

bool eb_node_direct_is_done(const eb_node_direct *own) { return own->num_left == 0; }

void eb_node_direct_adopt(eb_node_direct *own, void *memory) {
  own->memory = memory;
  own->buffer = NULL;
  eb_lock();
  own->next = adopted;
  adopted = own;
  eb_unlock();
}

int eb_node_direct_progress(void) {
  static unsigned num_looks; /* under eb_lock */
  int num = 0;
  if (!__atomic_load_n(&adopted, __ATOMIC_RELAXED)) return 0;
  eb_lock();
  const bool looks_for_peers = ++num_looks % LOOKS_FOR_PEER == 0; /* that takes a call of the system for each */
  for (eb_node_direct **at = &adopted; *at;) {
    eb_node_direct *const own = *at;
    bool done;
    const int rc = eb_node_direct_test_all(own, &done);
    if (rc == MPI_SUCCESS && !done && !(looks_for_peers && eb_neighbour_has_ended(own->peer))) {
      num++;
      at = &own->next;
      continue;
    }
    *at = own->next;
    if (rc != MPI_SUCCESS) eb_node_direct_stop(own); /* its receiver may still read other segments */
    eb_node_direct_leave(own);
  }
  eb_unlock();
  return num;
}
