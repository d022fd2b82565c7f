/* Copies segments into a ring, and out of it. */
#include "partitioned/wire/node_ring.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/domain/domain.h"
#include "partitioned/node/host_memory.h"
#include "partitioned/node/pool.h"

struct eb_node_ring {
  const eb_transfer *transfer;
  const eb_buffer *buffer;
  eb_ring ring;
  int64_t offset;
  eb_pool_block *block; /* a sender's */
  bool is_host; /* the processor reaches what is copied */
  uint64_t start;
  const eb_segments *segments;
  uint16_t num_chunks[EB_NODE_MAX_SEGMENTS]; /* of each segment */
  /* Of a receiver's start: segments that have not been copied, and chunks that have. */
  int num_left;
  uint16_t num_copied[EB_NODE_MAX_SEGMENTS];
};

bool eb_node_ring_is_possible(const eb_transfer *transfer) {
  return transfer->total_bytes > 0 && !eb_transfer_is_null(transfer) && !eb_transfer_is_inter_node(transfer) &&
         eb_pool_may_have(eb_ring_bytes(transfer->total_bytes));
}

bool eb_node_ring_has_room(const eb_transfer *transfer) {
  return eb_node_ring_is_possible(transfer) && eb_pool_has_room(transfer->wire_peer, eb_ring_bytes(transfer->total_bytes));
}

/* A type with gaps is packed into memory of the library. */
static bool is_in_host_memory(const eb_transfer *transfer, const eb_buffer *buffer) {
  return eb_buffer_staging(buffer) || eb_memory_is_readable(eb_buffer_data(buffer, 0, 1).address, (size_t)transfer->total_bytes);
}

static eb_node_ring *make(const eb_transfer *transfer, const eb_buffer *buffer, int64_t offset, bool is_host) {
  void *const memory = eb_pool_at(offset, eb_ring_bytes(transfer->total_bytes));
  eb_node_ring *const made = memory ? malloc(sizeof *made) : NULL;
  if (!made) return NULL;
  *made = (eb_node_ring){.transfer = transfer, .buffer = buffer, .offset = offset, .is_host = is_host};
  eb_ring_begin(&made->ring, memory, transfer->total_bytes);
  return made;
}

eb_node_ring *eb_node_ring_take(const eb_transfer *transfer, const eb_buffer *buffer) {
  if (!eb_node_ring_is_possible(transfer) || !is_in_host_memory(transfer, buffer)) return NULL;
  eb_pool_block *const block = eb_pool_take(transfer->wire_peer, eb_ring_bytes(transfer->total_bytes));
  if (!block) return NULL;
  eb_node_ring *const made = make(transfer, buffer, eb_pool_offset(block), true);
  if (!made) {
    eb_pool_return(block);
    return NULL;
  }
  made->block = block;
  eb_ring_format(made->ring.shared);
  return made;
}

int64_t eb_node_ring_offset(const eb_node_ring *own) { return own->offset; }

void eb_node_ring_refuse_at(const eb_transfer *transfer, int64_t offset) {
  eb_ring ring;
  void *const memory = eb_pool_at(offset, eb_ring_bytes(transfer->total_bytes));
  if (!memory) return;
  eb_ring_begin(&ring, memory, transfer->total_bytes);
  eb_ring_leave(&ring);
}

eb_node_ring *eb_node_ring_join(const eb_transfer *transfer, const eb_buffer *buffer, int64_t offset) {
  eb_node_ring *const made = make(transfer, buffer, offset, is_in_host_memory(transfer, buffer));
  if (made) eb_pool_touch(made->ring.shared, eb_ring_bytes(transfer->total_bytes));
  else eb_node_ring_refuse_at(transfer, offset);
  return made;
}

void eb_node_ring_refuse(eb_node_ring *own) { eb_ring_leave(&own->ring); }

void eb_node_ring_leave(eb_node_ring *own) {
  if (!own) return;
  if (own->transfer->is_send) eb_pool_leave(own->block);
  else eb_ring_leave(&own->ring);
  free(own);
}

static int64_t begin_of(const eb_node_ring *own, int segment) { return own->segments->first_byte[segment]; }

static int64_t bytes_of(const eb_node_ring *own, int segment) { return begin_of(own, segment + 1) - begin_of(own, segment); }

int eb_node_ring_cut(eb_node_ring *own, const eb_segments *segments) {
  if (segments->num > EB_NODE_MAX_SEGMENTS) return MPI_ERR_INTERN;
  own->segments = segments;
  for (int s = 0; s < segments->num; s++) own->num_chunks[s] = (uint16_t)eb_ring_num_chunks(bytes_of(own, s));
  return MPI_SUCCESS;
}

void eb_node_ring_open(eb_node_ring *own, uint64_t start) {
  own->start = start;
  own->num_left = own->segments->num;
  if (own->transfer->is_send) eb_ring_open(&own->ring, start);
  else memset(own->num_copied, 0, (size_t)own->num_left * sizeof own->num_copied[0]);
}

void eb_node_ring_send(const eb_node_ring *own, int segment) {
  const int64_t begin = begin_of(own, segment), num_bytes = bytes_of(own, segment);
  const eb_message_data data = eb_buffer_data(own->buffer, begin, num_bytes);
  eb_ring_fill(&own->ring, own->start, segment, begin, data.address, num_bytes);
}

bool eb_node_ring_is_free(const eb_node_ring *own, uint64_t start) { return eb_ring_is_free(&own->ring, start); }

/* The MPI knows what memory is a device's. */
static int copy_out(const eb_node_ring *own, int64_t begin, int64_t num_bytes) {
  const eb_message_data data = eb_buffer_data(own->buffer, begin, num_bytes);
  const char *const from = eb_ring_at(&own->ring, own->start, begin);
  int at = 0;
  if (!own->is_host) return PMPI_Unpack(from, data.count, &at, data.address, data.count, MPI_BYTE, eb_domain.comm);
  memcpy(data.address, from, (size_t)num_bytes);
  return MPI_SUCCESS;
}

/* How many chunks have come that have not been copied? The peer may not say that there are more than the segment has. */
static int num_new(const eb_node_ring *own, int segment) {
  const int num_chunks = own->num_chunks[segment], num_copied = own->num_copied[segment];
  if (num_copied == num_chunks) return 0;
  const int num_filled = eb_ring_num_filled(&own->ring, own->start, segment, num_chunks);
  return (num_filled < num_chunks ? num_filled : num_chunks) - num_copied;
}

static int receive(eb_node_ring *own, int segment, int num) {
  const int64_t num_bytes = bytes_of(own, segment), chunk = eb_ring_chunk_bytes(num_bytes);
  const int64_t begin = own->num_copied[segment] * chunk, end = begin + num * chunk;
  own->num_copied[segment] = (uint16_t)(own->num_copied[segment] + num);
  return copy_out(own, begin_of(own, segment) + begin, (end < num_bytes ? end : num_bytes) - begin);
}

int eb_node_ring_test(eb_node_ring *own, int segment, bool *done) {
  *done = own->transfer->is_send;
  if (*done) return MPI_SUCCESS;
  const int num = num_new(own, segment);
  const int rc = num > 0 ? receive(own, segment, num) : MPI_SUCCESS;
  *done = own->num_copied[segment] == own->num_chunks[segment];
  if (num > 0 && *done && --own->num_left == 0) eb_ring_consume(&own->ring, own->start);
  return rc;
}

int eb_node_ring_test_all(eb_node_ring *own, bool *done) {
  int rc = MPI_SUCCESS;
  *done = true;
  for (int s = 0; rc == MPI_SUCCESS && s < own->segments->num; s++) {
    bool is_here;
    rc = eb_node_ring_test(own, s, &is_here);
    *done = *done && is_here;
  }
  return rc;
}

bool eb_node_ring_has_come(const eb_node_ring *own) {
  for (int s = 0; s < own->segments->num; s++)
    if (num_new(own, s) > 0) return true;
  return false;
}

bool eb_node_ring_is_read(const eb_node_ring *own) { return own->num_left == 0; }
