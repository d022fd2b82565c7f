/* Keeps the memory of sends until they are complete. */
#include "partitioned/domain/send_queue.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/process/world.h"

struct eb_pending_send {
  eb_pending_send *next;
  int num;
  MPI_Request *requests; /* [num]; the one below, or those of a request that the program has freed */
  MPI_Request request;
  void *memory; /* that goes with them */
  eb_send_kind kind;
  size_t num_header_bytes;
  char bytes[]; /* the header first */
};

static eb_pending_send *pending, **last_pending = &pending; /* in the order of their next test */
static atomic_int num_pending[2];                 /* of each kind */

/* Tested per call, which every start and test makes. */
enum { MAX_TESTED = 16 };

int eb_send_queue_num_data(void) { return atomic_load_explicit(&num_pending[EB_SEND_DATA], memory_order_relaxed); }

int eb_send_queue_num_control(void) { return atomic_load_explicit(&num_pending[EB_SEND_CONTROL], memory_order_relaxed); }

static void append(eb_pending_send *made) {
  made->next = NULL;
  *last_pending = made;
  last_pending = &made->next;
}

static void add(eb_pending_send *made) {
  eb_lock();
  append(made);
  num_pending[made->kind]++;
  eb_unlock();
}

/* The program's memory may be a device's, where the CPU must not go; the MPI knows what is whose. Packed bytes are the bytes
 * themselves on every MPI seen, which the staging of types with gaps relies on too. */
static int copy(eb_send_kind kind, const void *bytes, int num_bytes, char *copied, MPI_Comm comm) {
  int at = 0;
  if (num_bytes == 0) return MPI_SUCCESS;
  if (kind == EB_SEND_DATA) return PMPI_Pack(bytes, num_bytes, MPI_BYTE, copied, num_bytes, &at, comm);
  memcpy(copied, bytes, (size_t)num_bytes);
  return MPI_SUCCESS;
}

eb_pending_send *eb_send_queue_reserve(size_t num_bytes) {
  eb_pending_send *const made = malloc(sizeof *made + num_bytes);
  if (made) made->num_header_bytes = 0;
  return made;
}

void eb_send_queue_set_header(eb_pending_send *reserved, const void *bytes, size_t num_bytes) {
  memcpy(reserved->bytes, bytes, num_bytes);
  reserved->num_header_bytes = num_bytes;
}

void eb_send_queue_drop(eb_pending_send *reserved) { free(reserved); }

int eb_send_queue_send_reserved(eb_pending_send *reserved, eb_send_kind kind, const void *bytes, size_t num_bytes, int peer,
                                int tag, MPI_Comm comm) {
  reserved->num = 1;
  reserved->requests = &reserved->request;
  reserved->memory = NULL;
  reserved->kind = kind;
  int rc = copy(kind, bytes, (int)num_bytes, reserved->bytes + reserved->num_header_bytes, comm);
  num_bytes += reserved->num_header_bytes;
  if (rc == MPI_SUCCESS) rc = PMPI_Isend(reserved->bytes, (int)num_bytes, MPI_BYTE, peer, tag, comm, &reserved->request);
  if (rc == MPI_SUCCESS) add(reserved);
  else free(reserved);
  return rc;
}

int eb_send_queue_send(eb_send_kind kind, const void *bytes, size_t num_bytes, int peer, int tag, MPI_Comm comm) {
  eb_pending_send *made = eb_send_queue_reserve(num_bytes);
  return made ? eb_send_queue_send_reserved(made, kind, bytes, num_bytes, peer, tag, comm) : MPI_ERR_NO_MEM;
}

int eb_send_queue_adopt(eb_send_kind kind, int num, MPI_Request *requests, void *memory) {
  eb_pending_send *made = malloc(sizeof *made);
  if (!made) return MPI_ERR_NO_MEM;
  made->num = num;
  made->requests = requests;
  made->memory = memory;
  made->kind = kind;
  add(made);
  return MPI_SUCCESS;
}

static bool is_complete(const eb_pending_send *sent) {
  for (int r = 0; r < sent->num; r++) {
    int done = 0;
    if (PMPI_Test(&sent->requests[r], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) return false;
  }
  return true;
}

static void end(eb_pending_send *done) {
  num_pending[done->kind]--;
  for (int r = 0; r < done->num; r++)
    if (done->requests[r] != MPI_REQUEST_NULL) PMPI_Request_free(&done->requests[r]); /* a persistent one (Open MPI) */
  if (done->requests != &done->request) free(done->requests);
  free(done->memory);
  free(done);
}

void eb_send_queue_progress(void) {
  if (eb_send_queue_num_data() + eb_send_queue_num_control() == 0) return;
  eb_lock();
  int num = eb_send_queue_num_data() + eb_send_queue_num_control();
  if (num > MAX_TESTED) num = MAX_TESTED;
  for (; num > 0 && pending; num--) {
    eb_pending_send *const first = pending;
    pending = first->next;
    if (!pending) last_pending = &pending;
    if (is_complete(first)) end(first);
    else append(first);
  }
  eb_unlock();
}
