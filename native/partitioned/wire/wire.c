/* Starts the MPI's requests of a channel's segments, and tests them. */
#include "partitioned/wire/wire.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/domain/domain.h"
#include "partitioned/node/neighbours.h"
#include "partitioned/process/clock.h"
#include "partitioned/wire/frames.h"

/* Up to this size the MPI packs a type with gaps: that saves a copy, and calls. Larger messages are packed here, each partition
 * by the thread that completes it. */
#define MAX_UNPACKED_BYTES (INT64_C(32) * 1024)
/* Except for one size: within a node MPICH 5.0.2 takes 400 us for each message of 8 KiB with gaps, but not for 7.5 or 8.5 KiB.
 * With other MPIs a copy of so few bytes is cheap. */
enum { SLOW_BYTES = 8 * 1024 };

void eb_wire_begin(eb_wire *wire, const eb_transfer *transfer, eb_buffer *buffer) {
  wire->transfer = transfer;
  wire->buffer = buffer;
  wire->base = EB_BASE_UNKNOWN;
  wire->num_ids = 1;
}

static void drop_copies(eb_wire *wire) {
  for (int s = 0; wire->copies && s < wire->segments.num; s++) eb_send_queue_drop(wire->copies[s]);
  free(wire->copies);
  wire->copies = NULL;
}

static void drop_requests(eb_wire *wire) {
  for (int s = 0; wire->requests && s < wire->segments.num; s++)
    if (wire->requests[s] != MPI_REQUEST_NULL) PMPI_Request_free(&wire->requests[s]);
}

static void drop_segments(eb_wire *wire) {
  drop_copies(wire);
  drop_requests(wire);
  free(wire->requests);
  wire->requests = NULL;
  free(wire->taken);
  wire->taken = NULL;
  wire->is_built = false;
  eb_segments_free(&wire->segments);
}

void eb_wire_end(eb_wire *wire) {
  drop_segments(wire);
  eb_wire_leave_memory(wire, EB_PATH_RING);
  eb_wire_leave_memory(wire, EB_PATH_DIRECT);
}

bool eb_wire_may_use(const eb_wire *wire, eb_path path) {
  if (path == EB_PATH_MESSAGE) return true;
  if (eb_wire_is_framed(wire)) return false;
  return path == EB_PATH_RING ? eb_node_ring_is_possible(wire->transfer) : eb_node_direct_is_possible(wire->transfer);
}

bool eb_wire_has_room(const eb_wire *wire, eb_path path) {
  if (path == EB_PATH_MESSAGE || eb_wire_has_memory(wire, path)) return true;
  return path == EB_PATH_RING ? eb_node_ring_has_room(wire->transfer) : eb_node_direct_has_room(wire->transfer);
}

bool eb_wire_reserve(eb_wire *wire, eb_path path, int num_segments, int64_t *offset) {
  if (path == EB_PATH_MESSAGE) return true;
  if (num_segments > EB_NODE_MAX_SEGMENTS || !eb_wire_may_use(wire, path)) return false;
  if (path == EB_PATH_RING) {
    if (!wire->ring) wire->ring = eb_node_ring_take(wire->transfer, wire->buffer);
    if (wire->ring) *offset = eb_node_ring_offset(wire->ring);
    return wire->ring != NULL;
  }
  if (!wire->direct) wire->direct = eb_node_direct_take(wire->transfer, wire->buffer);
  if (wire->direct) *offset = eb_node_direct_offset(wire->direct);
  return wire->direct != NULL;
}

int eb_wire_join(eb_wire *wire, eb_path path, int64_t offset) {
  if (path == EB_PATH_RING) {
    if (wire->ring) return eb_node_ring_offset(wire->ring) == offset ? MPI_SUCCESS : MPI_ERR_INTERN;
    wire->ring = eb_node_ring_join(wire->transfer, wire->buffer, offset);
    return wire->ring ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  }
  if (wire->direct) return eb_node_direct_offset(wire->direct) == offset ? MPI_SUCCESS : MPI_ERR_INTERN;
  wire->direct = eb_node_direct_join(wire->transfer, wire->buffer, offset);
  return wire->direct ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void eb_wire_decline(const eb_transfer *transfer, eb_path path, int64_t offset) {
  if (path == EB_PATH_RING) eb_node_ring_refuse_at(transfer, offset);
  else eb_node_direct_refuse_at(offset);
}

void eb_wire_leave_memory(eb_wire *wire, eb_path path) {
  if (path == EB_PATH_RING) {
    eb_node_ring_leave(wire->ring);
    wire->ring = NULL;
  } else {
    eb_node_direct_leave(wire->direct);
    wire->direct = NULL;
  }
}

int eb_wire_first_segments(const eb_transfer *transfer, int64_t total_bytes, int64_t step_bytes, eb_segments *segments) {
  if (step_bytes) return eb_segments_uniform(total_bytes, step_bytes, segments);
  const unsigned char *const numbers = eb_transfer_agreement(transfer)->first_numbers;
  return eb_segments_canonical(total_bytes, numbers[eb_planner_first_place(total_bytes)], segments);
}

static bool is_packed_here(const eb_transfer *transfer, int64_t bytes) {
  return bytes > MAX_UNPACKED_BYTES || (bytes == SLOW_BYTES && !eb_transfer_is_inter_node(transfer));
}

/* Copies, and what travels through memory, are made of packed bytes, and a message of the program's memory has whole partitions. */
static void choose_data(eb_wire *wire) {
  bool is_staged = wire->is_copying || eb_wire_is_in_memory(wire);
  for (int s = 0; s < wire->segments.num && wire->transfer->partition_bytes > 0; s++)
    is_staged = is_staged || is_packed_here(wire->transfer, eb_wire_segment_bytes(wire, s)) ||
                wire->segments.first_byte[s + 1] % wire->transfer->partition_bytes != 0;
  eb_buffer_set_staged(wire->buffer, is_staged);
}

int eb_wire_set_segments(eb_wire *wire, eb_segments segments) {
  drop_segments(wire); /* of as many as there were */
  wire->segments = segments;
  choose_data(wire);
  const size_t num = (size_t)segments.num;
  wire->requests = malloc((num + 1) * sizeof *wire->requests);
  if (!wire->requests) return MPI_ERR_NO_MEM;
  for (size_t s = 0; s <= num; s++) wire->requests[s] = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

void eb_wire_set_tags(eb_wire *wire, int base, int64_t num_ids, int lane) {
  wire->num_ids = num_ids;
  wire->lane = lane;
  atomic_store_explicit(&wire->base, base, memory_order_release);
}

void eb_wire_use_frames(eb_wire *wire, int64_t id) {
  wire->id = id;
  wire->lane = 0;
  atomic_store_explicit(&wire->base, EB_BASE_OF_FRAMES, memory_order_release);
}

static eb_frame_header header_of(const eb_wire *wire, int segment) {
  return (eb_frame_header){.id = wire->id, .start = (uint32_t)wire->start, .segment = segment};
}

int eb_wire_segmentation_tag(const eb_wire *wire) { return eb_tags_segmentation(&eb_domain.tags, wire->base, wire->num_ids); }

int eb_wire_feedback_tag(const eb_wire *wire) { return eb_tags_feedback(&eb_domain.tags, wire->base, wire->num_ids); }

static int segment_tag(const eb_wire *wire, int segment) { return eb_tags_segment(&eb_domain.tags, wire->base, segment); }

static eb_message_data segment_data(const eb_wire *wire, int segment) {
  return eb_buffer_data(wire->buffer, wire->segments.first_byte[segment], eb_wire_segment_bytes(wire, segment));
}

/* Makes the request of a segment. Calls the MPI's functions by name: their addresses are unknown, and so null, while an MPI that the
 * program loads for itself alone is not there yet, whereas a call is bound when it is made. */
static int make_request(const eb_wire *wire, int segment) {
  const eb_transfer *const transfer = wire->transfer;
  const eb_message_data data = segment_data(wire, segment);
  const int peer = transfer->wire_peer, tag = segment_tag(wire, segment);
  const MPI_Comm comm = eb_domain.lanes[eb_wire_lane(wire, segment)];
  MPI_Request *const request = &wire->requests[segment];
  int rc;
  if (eb_world.keeps_requests) {
    rc = transfer->is_send ? PMPI_Send_init(data.address, data.count, data.type, peer, tag, comm, request)
                           : PMPI_Recv_init(data.address, data.count, data.type, peer, tag, comm, request);
  } else {
    rc = transfer->is_send ? PMPI_Isend(data.address, data.count, data.type, peer, tag, comm, request)
                           : PMPI_Irecv(data.address, data.count, data.type, peer, tag, comm, request);
  }
  if (rc != MPI_SUCCESS) *request = MPI_REQUEST_NULL;
  return rc;
}

/* Messages are persistent requests with Open MPI, which prepares them, so that a start takes less than a send. MPICH, and the MPIs
 * derived from it, make another request in each start of a persistent one. One partition of 512 B after a computation took this
 * much longer than a send, with persistent requests and with requests of one start: MPICH 15 and 8 %, Intel MPI 16 and 11 %, Open
 * MPI 19 and 41 %. */
int eb_wire_build(eb_wire *wire) {
  if (wire->is_built) return MPI_SUCCESS;
  drop_requests(wire); /* of an attempt that failed */
  for (int s = 0; eb_world.keeps_requests && !eb_transfer_is_null(wire->transfer) && s < wire->segments.num; s++) {
    const int rc = make_request(wire, s);
    if (rc != MPI_SUCCESS) return rc;
  }
  wire->is_built = true;
  return MPI_SUCCESS;
}

/* Sends a segment, or posts its receive. */
static int start_message(const eb_wire *wire, int segment) {
  return eb_world.keeps_requests ? PMPI_Start(&wire->requests[segment]) : make_request(wire, segment);
}

double eb_wire_measure_pack_s(const eb_wire *wire) {
  if (!eb_buffer_is_packed_by_mpi(wire->buffer)) return 0;
  const double begin_s = eb_stopwatch_s();
  return eb_buffer_pack(wire->buffer, 0) == MPI_SUCCESS ? eb_stopwatch_s() - begin_s : 0;
}

void eb_wire_begin_copying(eb_wire *wire) {
  wire->is_copying = true;
  choose_data(wire);
}

void eb_wire_end_copying(eb_wire *wire) {
  wire->is_copying = false;
  drop_copies(wire);
  if (!wire->is_built) choose_data(wire); /* else within a start, whose partitions may be packed already */
}

int eb_wire_reserve_copies(eb_wire *wire) {
  const int num = wire->segments.num;
  const size_t num_header_bytes = eb_wire_is_framed(wire) ? sizeof(eb_frame_header) : 0;
  if (!wire->copies) wire->copies = calloc((size_t)num, sizeof *wire->copies);
  for (int s = 0; wire->copies && s < num; s++) {
    wire->copies[s] = eb_send_queue_reserve(num_header_bytes + (size_t)eb_wire_segment_bytes(wire, s));
    if (!wire->copies[s]) drop_copies(wire);
  }
  return wire->copies ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static int open_memory(eb_wire *wire) {
  const bool is_ring = eb_wire_is_on_ring(wire);
  int rc = MPI_SUCCESS;
  if (!wire->is_built)
    rc = is_ring ? eb_node_ring_cut(wire->ring, &wire->segments) : eb_node_direct_cut(wire->direct, &wire->segments);
  if (rc != MPI_SUCCESS) return rc;
  wire->is_built = true;
  wire->num_looks = 0;
  if (is_ring) eb_node_ring_open(wire->ring, wire->start);
  else eb_node_direct_open(wire->direct, wire->start);
  return rc;
}

int eb_wire_open(eb_wire *wire, uint64_t start) {
  wire->is_serial = wire->is_copying;
  wire->start = start;
  atomic_store_explicit(&wire->num_unsent, wire->segments.num, memory_order_release);
  if (eb_wire_is_in_memory(wire)) return open_memory(wire);
  return wire->is_copying ? MPI_SUCCESS : eb_wire_build(wire);
}

/* No frame of a start that begins has been taken. */
static int expect_frames(eb_wire *wire) {
  const size_t num = (size_t)wire->segments.num;
  if (!wire->taken) wire->taken = malloc(num * sizeof *wire->taken);
  if (!wire->taken) return MPI_ERR_NO_MEM;
  memset(wire->taken, 0, num * sizeof *wire->taken);
  return MPI_SUCCESS;
}

/* In the first start the two sides only assume equal totals; later a segmentation message contains the sender's total. */
int eb_wire_post(eb_wire *wire, uint64_t start) {
  int rc = eb_wire_error(wire);
  wire->start = start;
  wire->compares_sizes = start == 1;
  if (rc == MPI_SUCCESS && eb_wire_is_in_memory(wire)) return open_memory(wire);
  if (rc == MPI_SUCCESS && eb_wire_is_framed(wire)) return expect_frames(wire);
  if (rc == MPI_SUCCESS) rc = eb_wire_build(wire);
  if (rc != MPI_SUCCESS || eb_transfer_is_null(wire->transfer)) return rc;
  if (eb_world.keeps_requests && wire->segments.num > 1) return PMPI_Startall(wire->segments.num, wire->requests);
  for (int s = 0; rc == MPI_SUCCESS && s < wire->segments.num; s++) rc = start_message(wire, s);
  return rc;
}

void eb_wire_send(eb_wire *wire, int segment) {
  const eb_transfer *const transfer = wire->transfer;
  int rc = MPI_SUCCESS;
  if (eb_wire_is_on_ring(wire)) {
    eb_node_ring_send(wire->ring, segment);
  } else if (eb_wire_is_in_memory(wire)) {
    rc = eb_node_direct_send(wire->direct, segment);
  } else if (wire->is_copying) {
    const bool is_framed = eb_wire_is_framed(wire);
    const eb_frame_header header = header_of(wire, segment);
    const int tag = is_framed ? eb_tags_control(&eb_domain.tags, EB_CONTROL_FRAME) : segment_tag(wire, segment);
    if (is_framed) eb_send_queue_set_header(wire->copies[segment], &header, sizeof header);
    rc = eb_send_queue_send_reserved(wire->copies[segment], EB_SEND_DATA, segment_data(wire, segment).address,
                                     (size_t)eb_wire_segment_bytes(wire, segment), transfer->wire_peer, tag,
                                     eb_domain.lanes[eb_wire_lane(wire, segment)]);
    wire->copies[segment] = NULL;
  } else if (!eb_transfer_is_null(transfer)) {
    rc = start_message(wire, segment);
  }
  if (rc != MPI_SUCCESS) eb_wire_set_error(wire, rc);
}

/* An error is kept: a request that was found complete here is inactive or null, and a later wait does not report it. */
static int compare(eb_wire *wire, int index, const MPI_Status *status) {
  int bytes;
  /* The segmentation message; a segment that was tested before. */
  if (index >= wire->segments.num || status->MPI_SOURCE == MPI_ANY_SOURCE) return MPI_SUCCESS;
  const int rc = PMPI_Get_count(status, MPI_BYTE, &bytes);
  if (rc != MPI_SUCCESS || bytes == eb_wire_segment_bytes(wire, index)) return rc;
  eb_wire_set_error(wire, MPI_ERR_TRUNCATE);
  return MPI_ERR_TRUNCATE;
}

static int test_frame(eb_wire *wire, int segment, bool *done) {
  *done = wire->taken[segment];
  if (*done) return MPI_SUCCESS;
  const eb_frame_header header = header_of(wire, segment);
  const eb_message_data data = segment_data(wire, segment);
  const int rc = eb_frames_take(wire->transfer->wire_peer, &header, &data, eb_wire_segment_bytes(wire, segment), done);
  wire->taken[segment] = *done;
  if (rc != MPI_SUCCESS) eb_wire_set_error(wire, rc);
  return rc;
}

int eb_wire_test_one(eb_wire *wire, int index, bool *done) {
  if (eb_wire_is_in_memory(wire) && index < wire->segments.num)
    return eb_wire_is_on_ring(wire) ? eb_node_ring_test(wire->ring, index, done) : eb_node_direct_test(wire->direct, index, done);
  if (wire->taken && index < wire->segments.num) return test_frame(wire, index, done);
  MPI_Status status;
  int flag = 0;
  *done = true;
  if (wire->requests[index] == MPI_REQUEST_NULL) return MPI_SUCCESS;
  const int rc = PMPI_Test(&wire->requests[index], &flag, wire->compares_sizes ? &status : MPI_STATUS_IGNORE);
  *done = flag;
  /* The request of a failed receive is inactive or null, and a later wait would wait for the other segments. */
  if (rc != MPI_SUCCESS) eb_wire_set_error(wire, rc);
  return rc == MPI_SUCCESS && flag && wire->compares_sizes ? compare(wire, index, &status) : rc;
}

/* A test may make progress on its own lane alone. Therefore each lane is tested up to its first message that is not complete. */
static int test_first(eb_wire *wire, int num, bool *done) {
  const int num_lanes = eb_wire_num_lanes(wire);
  int num_waiting = 0;
  uint32_t waiting = 0; /* the lanes */
  for (int r = 0; r < num && num_waiting < num_lanes; r++) {
    const uint32_t lane = UINT32_C(1) << (r < wire->segments.num ? eb_wire_lane(wire, r) : 0);
    bool is_complete;
    if (waiting & lane) continue;
    const int rc = eb_wire_test_one(wire, r, &is_complete);
    if (rc != MPI_SUCCESS) {
      *done = false;
      return rc;
    }
    if (is_complete) continue;
    waiting |= lane;
    num_waiting++;
  }
  *done = num_waiting == 0;
  return MPI_SUCCESS;
}

/* So many calls after which it is asked, and asked again, whether the peer is there. */
enum { LOOKS_FOR_PEER = 1 << 14 };

/* A process that has ended has sent what it has sent, which is looked for once more before this counts as an error. */
static bool is_peer_lost(eb_wire *wire) {
  if (!eb_wire_is_in_memory(wire) || ++wire->num_looks % LOOKS_FOR_PEER != 0) return false;
  const bool was_gone = wire->is_peer_gone;
  wire->is_peer_gone = eb_neighbour_has_ended(wire->transfer->wire_peer);
  return was_gone && wire->is_peer_gone;
}

/* Some MPIs fail a probe for any source once any rank has died. What travels in shared memory fails only if its peer has. */
int eb_wire_progress(eb_wire *wire) {
  const int tag = eb_tags_control(&eb_domain.tags, EB_CONTROL_SETUP), num_lanes = eb_wire_num_lanes(wire);
  int rc = MPI_SUCCESS, flag;
  for (int k = 0; rc == MPI_SUCCESS && k < num_lanes; k++)
    rc = PMPI_Iprobe(MPI_ANY_SOURCE, tag, eb_domain.lanes[eb_wire_lane_at(wire, k)], &flag, MPI_STATUS_IGNORE);
  if (rc != MPI_SUCCESS && eb_wire_is_in_memory(wire))
    rc = PMPI_Iprobe(wire->transfer->wire_peer, tag, eb_domain.comm, &flag, MPI_STATUS_IGNORE);
  return rc == MPI_SUCCESS && is_peer_lost(wire) ? MPI_ERR_OTHER : rc;
}

int eb_wire_test_segments(eb_wire *wire, bool *done) {
  if (eb_wire_is_on_ring(wire)) return eb_node_ring_test_all(wire->ring, done);
  return eb_wire_is_in_memory(wire) ? eb_node_direct_test_all(wire->direct, done) : test_first(wire, wire->segments.num, done);
}

int eb_wire_test(eb_wire *wire, bool *done) {
  if (!wire->ring && !wire->direct) return test_first(wire, wire->segments.num + 1, done);
  int rc = eb_wire_test_segments(wire, done);
  if (rc == MPI_SUCCESS && *done) rc = eb_wire_test_one(wire, wire->segments.num, done);
  *done = *done && eb_wire_next_is_free(wire);
  return rc;
}

/* One by one: calls for several requests hand errors to MPI_COMM_SELF's handler in MPICH, which may end the program, and a
 * receive that is too short must be detected though the others will never arrive. */
int eb_wire_wait(eb_wire *wire) {
  MPI_Status status;
  for (int r = 0; r <= wire->segments.num; r++) {
    if (wire->requests[r] == MPI_REQUEST_NULL) continue;
    int rc = PMPI_Wait(&wire->requests[r], wire->compares_sizes ? &status : MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && wire->compares_sizes) rc = compare(wire, r, &status);
    if (rc != MPI_SUCCESS) return rc;
  }
  return MPI_SUCCESS;
}

bool eb_wire_next_is_free(const eb_wire *wire) {
  return !wire->ring || !wire->transfer->is_send || eb_node_ring_is_free(wire->ring, wire->start + 1);
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Would a test receive something, or see that all is sent? */
static bool has_come(const eb_wire *wire) {
  const bool is_send = wire->transfer->is_send;
  if (is_send && eb_wire_has_unsent(wire)) return false;
  if (!eb_wire_is_on_ring(wire)) return eb_node_direct_has_come(wire->direct) || (is_send && eb_node_direct_is_done(wire->direct));
  return is_send ? eb_wire_next_is_free(wire) : eb_node_ring_has_come(wire->ring);
}

bool eb_wire_spin(const eb_wire *wire) {
  enum { NUM_LOOKS = 128, NUM_BEFORE_RELAX = 4 }; /* the processor's pause takes as long as ten looks */
  /* Where all is here, the segmentation message is awaited, which needs the MPI. */
  if (!wire->transfer->is_send &&
      (eb_wire_is_on_ring(wire) ? eb_node_ring_is_read(wire->ring) : eb_node_direct_is_done(wire->direct)))
    return false;
  for (int look = 0; look < NUM_LOOKS; look++) {
    if (has_come(wire)) return true;
    if (look % NUM_BEFORE_RELAX == NUM_BEFORE_RELAX - 1) relax();
  }
  return false;
}

int eb_wire_leave_in_flight(eb_wire *wire) {
  if (eb_wire_is_in_memory(wire)) {
    eb_node_direct_adopt(wire->direct, eb_buffer_staging(wire->buffer));
    wire->direct = NULL;
    eb_buffer_disown_staging(wire->buffer);
    return MPI_SUCCESS;
  }
  const int rc = eb_send_queue_adopt(EB_SEND_DATA, wire->segments.num, wire->requests, eb_buffer_staging(wire->buffer));
  if (rc != MPI_SUCCESS) return rc;
  wire->requests = NULL;
  eb_buffer_disown_staging(wire->buffer);
  return rc;
}

void eb_wire_refuse(eb_wire *wire) {
  if (wire->ring && !wire->transfer->is_send) eb_node_ring_refuse(wire->ring);
  if (wire->direct) eb_node_direct_stop(wire->direct);
}

void eb_wire_abandon(eb_wire *wire) {
  eb_wire_refuse(wire);
  for (int s = 0; wire->requests && s <= wire->segments.num; s++) {
    int is_complete = 1;
    if (wire->requests[s] == MPI_REQUEST_NULL || PMPI_Test(&wire->requests[s], &is_complete, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        is_complete)
      continue;
    if (wire->transfer->is_send) {
      eb_buffer_disown_staging(wire->buffer); /* lost, rather than given to others while it is being sent */
    } else {
      PMPI_Cancel(&wire->requests[s]);
      PMPI_Wait(&wire->requests[s], MPI_STATUS_IGNORE);
    }
  }
}
