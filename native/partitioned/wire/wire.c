/* Cuts a channel into segments and makes their persistent requests. */
#include "partitioned/wire/wire.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/wire/buffer.h"
#include "partitioned/domain/send_queue.h"

void eb_wire_drop_copies(eb_channel *channel) {
  for (int s = 0; channel->copies && s < channel->segments.num; s++) eb_send_queue_drop(channel->copies[s]);
  free(channel->copies);
  channel->copies = NULL;
}

int eb_wire_reserve_copies(eb_channel *channel) {
  const int num = channel->segments.num;
  channel->copies = calloc((size_t)num, sizeof *channel->copies);
  for (int s = 0; channel->copies && s < num; s++) {
    const int64_t *first_byte = &channel->segments.first_byte[s];
    channel->copies[s] = eb_send_queue_reserve((size_t)(first_byte[1] - first_byte[0]));
    if (!channel->copies[s]) eb_wire_drop_copies(channel);
  }
  return channel->copies ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void drop_requests(eb_channel *channel) {
  for (int s = 0; channel->requests && s < channel->segments.num; s++)
    if (channel->requests[s] != MPI_REQUEST_NULL) PMPI_Request_free(&channel->requests[s]);
}

void eb_wire_drop(eb_channel *channel) {
  eb_wire_drop_copies(channel);
  drop_requests(channel);
  free(channel->requests);
  free(channel->states);
  free(channel->wide_ranges);
  channel->requests = NULL;
  channel->states = NULL;
  channel->wide_ranges = NULL;
  channel->is_built = false;
}

/* Which states and partitions belong together, after the segments were set. */
int eb_wire_map(eb_channel *channel) {
  const size_t num = (size_t)channel->segments.num;
  channel->requests = malloc((num + 1) * sizeof *channel->requests);
  channel->states = aligned_alloc(_Alignof(eb_segment_state), num * sizeof *channel->states);
  for (size_t s = 0; channel->requests && s <= num; s++) channel->requests[s] = MPI_REQUEST_NULL;
  if (!channel->requests || !channel->states) return MPI_ERR_NO_MEM;
  const bool is_wide = num > (size_t)UINT16_MAX + 1;
  if (is_wide && !(channel->wide_ranges = malloc((size_t)channel->num_partitions * sizeof *channel->wide_ranges))) return MPI_ERR_NO_MEM;
  memset(channel->states, 0, num * sizeof *channel->states);
  for (int p = 0; p < channel->num_partitions; p++) {
    eb_segment_range range;
    const int64_t begin = p * channel->partition_bytes;
    eb_segments_cover(&channel->segments, begin, begin + channel->partition_bytes, &range.first, &range.last);
    if (is_wide) {
      channel->wide_ranges[p] = range;
    } else {
      eb_partition(channel, p)->first_segment = (uint16_t)range.first;
      eb_partition(channel, p)->last_segment = (uint16_t)range.last;
    }
    for (int s = range.first; s <= range.last; s++) channel->states[s].num_partitions++;
  }
  return MPI_SUCCESS;
}

int eb_wire_build(eb_channel *channel) {
  char *wire = eb_buffer_wire(channel);
  drop_requests(channel); /* of a building that failed */
  const MPI_Comm comm = eb_domain.lanes[channel->lane];
  for (int s = 0; channel->peer != MPI_PROC_NULL && s < channel->segments.num; s++) {
    const int64_t begin = channel->segments.first_byte[s];
    const int bytes = (int)(channel->segments.first_byte[s + 1] - begin);
    const int tag = eb_tags_segment(&eb_domain.tags, channel->base, s);
    const int rc = channel->is_send ? PMPI_Send_init(wire + begin, bytes, MPI_BYTE, channel->wire_peer, tag, comm,
                                                     &channel->requests[s])
                                    : PMPI_Recv_init(wire + begin, bytes, MPI_BYTE, channel->wire_peer, tag, comm,
                                                     &channel->requests[s]);
    if (rc != MPI_SUCCESS) return rc;
  }
  channel->is_built = true;
  return MPI_SUCCESS;
}

int eb_wire_canonical(const eb_channel *channel, int64_t total_bytes, eb_segments *segments) {
  const unsigned char *const numbers = eb_channel_agreement(channel)->first_numbers;
  return eb_segments_canonical(total_bytes, numbers[eb_planner_first_place(total_bytes)], segments);
}

int eb_wire_cut(eb_channel *channel, int64_t step_bytes) {
  eb_segments made;
  const int failed = step_bytes ? eb_segments_uniform(channel->total_bytes, step_bytes, &made)
                                : eb_wire_canonical(channel, channel->total_bytes, &made);
  if (failed) return MPI_ERR_NO_MEM;
  eb_wire_drop(channel); /* of as many as there were */
  eb_segments_free(&channel->segments);
  channel->segments = made;
  return eb_wire_map(channel);
}

void eb_wire_abandon(eb_channel *channel) {
  for (int s = 0; channel->requests && s <= channel->segments.num; s++) {
    int is_complete = 1;
    if (channel->requests[s] == MPI_REQUEST_NULL || PMPI_Test(&channel->requests[s], &is_complete, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
        is_complete)
      continue;
    if (channel->is_send) {
      channel->staging = NULL; /* lost, rather than given to others while it is being sent */
    } else {
      PMPI_Cancel(&channel->requests[s]);
      PMPI_Wait(&channel->requests[s], MPI_STATUS_IGNORE);
    }
  }
}

static int num_requests(const eb_channel *channel) {
  const int num = channel->segments.num;
  return num + (channel->requests[num] != MPI_REQUEST_NULL);
}

/* In the first start the two sides only assume equal totals; later a plan contains the sender's total. */
static bool is_to_be_compared(const eb_channel *channel) { return !channel->is_send && channel->num_starts == 1; }

/* An error is kept: a request that was found complete here is inactive, and a later wait for it sees nothing. */
static int compare(eb_channel *channel, int request, const MPI_Status *status) {
  int bytes;
  const int64_t *first_byte = channel->segments.first_byte;
  if (request >= channel->segments.num || status->MPI_SOURCE == MPI_ANY_SOURCE) return MPI_SUCCESS; /* a plan; seen before */
  const int rc = PMPI_Get_count(status, MPI_BYTE, &bytes);
  if (rc != MPI_SUCCESS || bytes == first_byte[request + 1] - first_byte[request]) return rc;
  atomic_store_explicit(&channel->error, MPI_ERR_TRUNCATE, memory_order_relaxed);
  return MPI_ERR_TRUNCATE;
}

int eb_wire_test_one(eb_channel *channel, int request, int *flag) {
  MPI_Status status;
  const bool compares = is_to_be_compared(channel);
  const int rc = PMPI_Test(&channel->requests[request], flag, compares ? &status : MPI_STATUS_IGNORE);
  /* The request of a failed receive is inactive, and a later wait would wait for the other segments. */
  if (rc != MPI_SUCCESS) atomic_store(&channel->error, rc);
  return rc == MPI_SUCCESS && *flag && compares ? compare(channel, request, &status) : rc;
}

/* One by one: calls for several requests hand errors to MPI_COMM_SELF's handler in MPICH, which may end the program,
 * and a receive that is too short must be seen though the others will never be. */
int eb_wire_wait(eb_channel *channel) {
  const int num = num_requests(channel);
  const bool compares = is_to_be_compared(channel);
  MPI_Status status;
  for (int r = 0; r < num; r++) {
    int rc = PMPI_Wait(&channel->requests[r], compares ? &status : MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && compares) rc = compare(channel, r, &status);
    if (rc != MPI_SUCCESS) return rc;
  }
  return MPI_SUCCESS;
}

int eb_wire_test(eb_channel *channel, bool *done) {
  const int num = num_requests(channel);
  *done = false;
  for (int r = 0; r < num; r++) {
    int flag = 0;
    const int rc = eb_wire_test_one(channel, r, &flag);
    if (rc != MPI_SUCCESS || !flag) return rc;
  }
  *done = true;
  return MPI_SUCCESS;
}
