/* Cuts a channel into segments and makes their persistent requests. */
#include "partitioned/wire.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/buffer.h"

void eb_wire_drop(eb_channel *channel) {
  for (int s = 0; channel->requests && s < channel->segments.num; s++)
    if (channel->requests[s] != MPI_REQUEST_NULL) PMPI_Request_free(&channel->requests[s]);
  free(channel->requests);
  free(channel->states);
  channel->requests = NULL;
  channel->states = NULL;
  channel->is_built = false;
}

/* Which states and partitions belong together, after the segments were set. */
int eb_wire_map(eb_channel *channel) {
  const size_t num = (size_t)channel->segments.num;
  channel->requests = malloc((num + 1) * sizeof *channel->requests);
  channel->states = aligned_alloc(_Alignof(eb_segment_state), num * sizeof *channel->states);
  for (size_t s = 0; channel->requests && s <= num; s++) channel->requests[s] = MPI_REQUEST_NULL;
  if (!channel->requests || !channel->states) return MPI_ERR_NO_MEM;
  memset(channel->states, 0, num * sizeof *channel->states);
  for (int p = 0; p < channel->num_partitions; p++) {
    eb_partition_state *partition = eb_partition(channel, p);
    const int64_t begin = p * channel->partition_bytes;
    eb_segments_cover(&channel->segments, begin, begin + channel->partition_bytes, &partition->first_segment,
                      &partition->last_segment);
    for (int s = partition->first_segment; s <= partition->last_segment; s++) channel->states[s].num_partitions++;
  }
  return MPI_SUCCESS;
}

int eb_wire_build(eb_channel *channel) {
  char *wire = eb_buffer_wire(channel);
  const MPI_Comm comm = channel->view->shadow->lanes[channel->lane];
  for (int s = 0; channel->peer != MPI_PROC_NULL && s < channel->segments.num; s++) {
    const int64_t begin = channel->segments.first_byte[s];
    const int bytes = (int)(channel->segments.first_byte[s + 1] - begin);
    const int rc = channel->is_send ? PMPI_Send_init(wire + begin, bytes, MPI_BYTE, channel->peer, channel->base + s, comm,
                                                     &channel->requests[s])
                                    : PMPI_Recv_init(wire + begin, bytes, MPI_BYTE, channel->peer, channel->base + s, comm,
                                                     &channel->requests[s]);
    if (rc != MPI_SUCCESS) return rc;
  }
  channel->is_built = true;
  return MPI_SUCCESS;
}

int eb_wire_cut(eb_channel *channel, int64_t step_bytes) {
  eb_segments made;
  const int failed = step_bytes ? eb_segments_uniform(channel->total_bytes, step_bytes, &made)
                                : eb_segments_canonical(channel->total_bytes, &made);
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

/* Calls for several requests tell the errors of single ones in their statuses only. Where there are more than these,
 * all that is known is that there was one. */
enum { MAX_STATUSES = 128 };

static int first_error(int rc, int num, const MPI_Status *statuses) {
  int class = MPI_SUCCESS;
  if (rc == MPI_SUCCESS || PMPI_Error_class(rc, &class) != MPI_SUCCESS || class != MPI_ERR_IN_STATUS) return rc;
  for (int r = 0; r < num && statuses != MPI_STATUSES_IGNORE; r++)
    if (statuses[r].MPI_ERROR != MPI_SUCCESS && statuses[r].MPI_ERROR != MPI_ERR_PENDING) return statuses[r].MPI_ERROR;
  return MPI_ERR_OTHER;
}

int eb_wire_wait(eb_channel *channel) {
  MPI_Status statuses[MAX_STATUSES];
  const int num = num_requests(channel);
  if (num == 1) return PMPI_Wait(&channel->requests[0], MPI_STATUS_IGNORE);
  MPI_Status *told = num <= MAX_STATUSES ? statuses : MPI_STATUSES_IGNORE;
  return first_error(PMPI_Waitall(num, channel->requests, told), num, told);
}

int eb_wire_test(eb_channel *channel, bool *done) {
  MPI_Status statuses[MAX_STATUSES];
  int flag = 0, rc;
  const int num = num_requests(channel);
  MPI_Status *told = num <= MAX_STATUSES ? statuses : MPI_STATUSES_IGNORE;
  if (num == 1) rc = PMPI_Test(&channel->requests[0], &flag, MPI_STATUS_IGNORE);
  else rc = first_error(PMPI_Testall(num, channel->requests, &flag, told), num, told);
  *done = flag;
  return rc;
}
