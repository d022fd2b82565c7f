/* MPI_Start, MPI_Startall, MPI_Request_free, MPI_Cancel. */
#include <stdatomic.h>
#include <stdio.h>

#include "interpose/complete.h"
#include "interpose/interpose.h"

static int start(eb_channel *channel) {
  if (channel->is_active) return eb_raise(channel->view, MPI_ERR_REQUEST, "MPI_Start was called with an active request");
  const int rc = eb_channel_start(channel);
  return rc == MPI_SUCCESS ? rc : eb_raise_for(channel, rc);
}

EB_APART static int start_any(MPI_Request *request) {
  eb_channel *channel = eb_at(request);
  return channel ? start(channel) : PMPI_Start(request);
}

EB_EXPORT int MPI_Start(MPI_Request *request) { return eb_none_live() ? PMPI_Start(request) : start_any(request); }

/* An array with a request that cannot be started starts none of ours. */
static int check_all(int count, MPI_Request requests[]) {
  for (int r = 0; r < count; r++) {
    eb_channel *channel = eb_channel_find(requests[r]);
    if (channel && channel->is_active) return start(channel);
    if (requests[r] == MPI_REQUEST_NULL) return eb_raise(NULL, MPI_ERR_REQUEST, "MPI_Startall was called with MPI_REQUEST_NULL");
  }
  return MPI_SUCCESS;
}

/* Those of the MPI between ours are started by one call, as the program asked. */
EB_APART static int start_all(int count, MPI_Request requests[]) {
  if (count > 0 && !requests) return eb_raise(NULL, MPI_ERR_ARG, "MPI_Startall was called without requests");
  if (!eb_any_ours(count, requests)) return PMPI_Startall(count, requests);
  int rc = check_all(count, requests), first = 0;
  for (int r = 0; r < count && rc == MPI_SUCCESS; r++) {
    eb_channel *channel = eb_channel_find(requests[r]);
    if (!channel) continue;
    if (first < r) rc = PMPI_Startall(r - first, &requests[first]);
    if (rc == MPI_SUCCESS) rc = start(channel);
    first = r + 1;
  }
  return rc == MPI_SUCCESS && first < count ? PMPI_Startall(count - first, &requests[first]) : rc;
}

EB_EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  return eb_none_live() ? PMPI_Startall(count, requests) : start_all(count, requests);
}

/* For calls that MPI forbids but MPIs accept, and that lose no data: prints the message once and continues. */
static void note(atomic_flag *is_noted, const char *sentence) {
  if (!atomic_flag_test_and_set(is_noted)) fprintf(stderr, "earlybird: rank %d: %s\n", eb_world.rank, sentence);
}

/* An active request may be freed when its operation is complete (MPI 4.1 section 4.2.2 forbids it only before). Benchmarks
 * do so after MPI_Parrived of every partition. While partitions are missing it stays an error: those of a sender would
 * never be sent, and a receiver's buffer would be written to, or not, at an unknown time. */
static bool end_active(eb_channel *channel, int *rc) {
  static atomic_flag is_noted = ATOMIC_FLAG_INIT;
  bool ended, is_in_flight;
  *rc = eb_channel_end(channel, &ended, &is_in_flight);
  if (*rc != MPI_SUCCESS) {
    *rc = eb_raise_for(channel, *rc);
    return false;
  }
  const char *const sentence =
      channel->transfer.is_send ? "MPI_Request_free was called with an active partitioned send whose partitions are not all ready"
                                : "MPI_Request_free was called with an active partitioned receive whose data has not all arrived";
  if (!ended) *rc = eb_raise(channel->view, MPI_ERR_REQUEST, sentence);
  if (is_in_flight)
    note(&is_noted, "MPI_Request_free was called with a partitioned send that is not complete; the data is still sent, and "
                    "the buffer must not change until the data is received");
  return ended;
}

EB_APART static int free_one(MPI_Request *request) {
  eb_channel *channel = eb_at(request);
  int rc;
  if (!channel) return PMPI_Request_free(request);
  if (channel->is_active && !end_active(channel, &rc)) return rc;
  return eb_channel_free(channel, request);
}

EB_EXPORT int MPI_Request_free(MPI_Request *request) { return eb_none_live() ? PMPI_Request_free(request) : free_one(request); }

/* An inactive or complete request cannot be cancelled; programs try this in their cleanup. */
EB_EXPORT int MPI_Cancel(MPI_Request *request) {
  static atomic_flag is_noted = ATOMIC_FLAG_INIT;
  eb_channel *channel = eb_none_live() ? NULL : eb_at(request);
  if (!channel) return PMPI_Cancel(request);
  bool done = true;
  const int rc = channel->is_active ? eb_channel_test(channel, &done) : MPI_SUCCESS;
  if (rc != MPI_SUCCESS) return eb_raise_for(channel, eb_channel_fail(channel, rc));
  if (!done) return eb_raise(channel->view, MPI_ERR_REQUEST, "a partitioned request that is not complete cannot be cancelled");
  note(&is_noted, "MPI_Cancel was called with a partitioned request that is inactive or complete; the call has no effect");
  return MPI_SUCCESS;
}
