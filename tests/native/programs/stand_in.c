/* Partitioned calls of known behaviour on persistent messages, to be preloaded: STAND_IN=last sends everything at the last
 * MPI_Pready, any other value sends each partition at its MPI_Pready; of these, `wrong` changes a bit of what was received. For
 * one request at a time in each rank.
 *
 * A partition that is sent at its MPI_Pready is there before that returns, except the last one: the receiver says so in the call
 * after the MPI_Parrived that told it. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 64 };
static MPI_Request messages[MAX];
static int num_messages, num_partitions, is_sender;
static atomic_int num_ready;
static MPI_Request key = MPI_REQUEST_NULL;

static char *received;
static MPI_Comm channel;
static int partner, num_told;
static int is_told; /* whether the last call said of a partition that it has arrived */
enum { TOLD_TAG = 999 };

static int behaves(const char *how) {
  const char *value = getenv("STAND_IN");
  return value != NULL && strcmp(value, how) == 0;
}

static int sends_last(void) { return behaves("last"); }

static int create(char *buffer, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                  MPI_Request *request, int sender) {
  int size;
  MPI_Type_size(type, &size);
  is_sender = sender;
  channel = comm;
  partner = peer;
  num_partitions = partitions;
  num_messages = sends_last() ? 1 : partitions;
  const int length = (int)count * (partitions / num_messages);
  for (int k = 0; k < num_messages; ++k) {
    char *part = buffer + (size_t)k * (size_t)length * (size_t)size;
    if (sender) PMPI_Send_init(part, length, type, peer, 1000 + tag + k, comm, &messages[k]);
    else PMPI_Recv_init(part, length, type, peer, 1000 + tag + k, comm, &messages[k]);
  }
  key = *request = messages[0];
  return MPI_SUCCESS;
}

int MPI_Psend_init(const void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request) {
  (void)info;
  return create((char *)buffer, partitions, count, type, peer, tag, comm, request, 1);
}

int MPI_Precv_init(void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request) {
  (void)info;
  received = buffer;
  return create(buffer, partitions, count, type, peer, tag, comm, request, 0);
}

int MPI_Pready(int partition, MPI_Request request) {
  (void)request;
  const int count = atomic_fetch_add(&num_ready, 1) + 1;
  if (sends_last()) return count == num_partitions ? PMPI_Start(&messages[0]) : MPI_SUCCESS;
  const int rc = PMPI_Start(&messages[partition]);
  if (count < num_partitions) PMPI_Recv(NULL, 0, MPI_BYTE, partner, TOLD_TAG, channel, MPI_STATUS_IGNORE);
  return rc;
}

/* That the program knows of a partition. */
static void tell(void) {
  if (is_told && ++num_told < num_partitions) PMPI_Send(NULL, 0, MPI_BYTE, partner, TOLD_TAG, channel);
  is_told = 0;
}

int MPI_Parrived(MPI_Request request, int partition, int *flag) {
  (void)request;
  if (sends_last()) return PMPI_Test(&messages[0], flag, MPI_STATUS_IGNORE);
  tell();
  const int rc = PMPI_Test(&messages[partition], flag, MPI_STATUS_IGNORE);
  is_told = *flag;
  return rc;
}

int MPI_Start(MPI_Request *request) {
  if (*request != key) return PMPI_Start(request);
  atomic_store(&num_ready, 0);
  num_told = is_told = 0;
  return is_sender ? MPI_SUCCESS : PMPI_Startall(num_messages, messages);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
  if (*request != key || key == MPI_REQUEST_NULL) return PMPI_Wait(request, status);
  const int rc = PMPI_Waitall(num_messages, messages, MPI_STATUSES_IGNORE);
  if (!is_sender && behaves("wrong")) received[0] ^= 1;
  return rc;
}

int MPI_Request_free(MPI_Request *request) {
  if (*request != key) return PMPI_Request_free(request);
  for (int k = 0; k < num_messages; ++k) PMPI_Request_free(&messages[k]);
  key = *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
