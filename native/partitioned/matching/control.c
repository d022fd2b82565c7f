/* Sends and receives control messages. */
#include "partitioned/matching/control.h"

#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"

int eb_control_send(int peer, int what, const void *bytes, size_t num_bytes) {
  return eb_send_queue_send(EB_SEND_CONTROL, bytes, num_bytes, peer, eb_tags_control(&eb_domain.tags, what), eb_domain.comm);
}

bool eb_control_take(int what, void *bytes, int *num_bytes) {
  MPI_Message message;
  MPI_Status status;
  const int tag = eb_tags_control(&eb_domain.tags, what);
  int found = 0;
  if (PMPI_Improbe(MPI_ANY_SOURCE, tag, eb_domain.comm, &found, &message, &status) != MPI_SUCCESS || !found) return false;
  return PMPI_Mrecv(bytes, *num_bytes, MPI_BYTE, &message, &status) == MPI_SUCCESS &&
         PMPI_Get_count(&status, MPI_BYTE, num_bytes) == MPI_SUCCESS;
}
