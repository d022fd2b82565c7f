/* MPI_Start, MPI_Startall, MPI_Request_free, MPI_Cancel. */
#include "interpose/complete.h"
#include "interpose/interpose.h"

static int start(eb_channel *channel) {
  if (channel->is_active) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Start was called with a request that is active");
  const int rc = eb_channel_start(channel);
  return rc == MPI_SUCCESS ? rc : eb_raise_for(channel, rc);
}

EB_APART static int start_any(MPI_Request *request) {
  eb_channel *channel = eb_requests_find(*request);
  return channel ? start(channel) : PMPI_Start(request);
}

EB_EXPORT int MPI_Start(MPI_Request *request) { return eb_none_live() ? PMPI_Start(request) : start_any(request); }

EB_APART static int start_all(int count, MPI_Request requests[]) {
  if (!eb_any_ours(count, requests)) return PMPI_Startall(count, requests);
  int rc = MPI_SUCCESS;
  for (int r = 0; r < count && rc == MPI_SUCCESS; r++) rc = start_any(&requests[r]);
  return rc;
}

EB_EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  return eb_none_live() ? PMPI_Startall(count, requests) : start_all(count, requests);
}

EB_APART static int free_one(MPI_Request *request) {
  eb_channel *channel = eb_requests_find(*request);
  if (!channel) return PMPI_Request_free(request);
  /* MPI 4.1 section 4.2.2 */
  if (channel->is_active)
    return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Request_free was called with a partitioned request that is active");
  return eb_channel_free(channel, request);
}

EB_EXPORT int MPI_Request_free(MPI_Request *request) {
  return eb_none_live() ? PMPI_Request_free(request) : free_one(request);
}

EB_EXPORT int MPI_Cancel(MPI_Request *request) {
  eb_channel *channel = eb_ours(*request);
  if (!channel) return PMPI_Cancel(request);
  return eb_raise(channel->view, MPI_ERR_REQUEST, "a partitioned request cannot be cancelled");
}
