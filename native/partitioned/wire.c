/* Cuts a channel into segments and makes their persistent requests. */
#include "partitioned/wire.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/buffer.h"

void eb_wire_drop(eb_channel *channel) {
  for (int s = 0; channel->is_built && s < channel->segments.num; s++)
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
  eb_wire_drop(channel);
  channel->requests = malloc((num + 1) * sizeof *channel->requests);
  channel->states = aligned_alloc(_Alignof(eb_segment_state), num * sizeof *channel->states);
  if (!channel->requests || !channel->states) return MPI_ERR_NO_MEM;
  memset(channel->states, 0, num * sizeof *channel->states);
  for (size_t s = 0; s <= num; s++) channel->requests[s] = MPI_REQUEST_NULL;
  for (size_t s = 0; s < num; s++) channel->states[s].channel = channel;
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
  eb_segments_free(&channel->segments);
  channel->segments = made;
  return eb_wire_map(channel);
}
