/* Waits for messages that have no reader, and declines what they name. */
#include "partitioned/adaptation/unread.h"

#include <stdlib.h>

#include "partitioned/adaptation/message.h"
#include "partitioned/domain/domain.h"
#include "partitioned/wire/wire.h"

typedef struct unread {
  struct unread *next;
  eb_transfer transfer;
  unsigned paths_joined; /* bits: the receiver has refused their memory */
  int64_t *message;
  MPI_Request request;
} unread;

static unread *first_unread; /* under eb_lock */

static void decline(unread *of) {
  for (int path = EB_PATH_RING; path < EB_NUM_PATHS; path++)
    if (eb_message_names(of->message, path) && !(of->paths_joined & 1U << path))
      eb_wire_decline(&of->transfer, (eb_path)path, *eb_message_offset(of->message, path));
}

static void end_unread(unread *of) {
  free(of->message);
  free(of);
}

bool eb_unread_keep(const eb_transfer *transfer, unsigned paths_joined, int64_t *message, MPI_Request request) {
  unread *const made = malloc(sizeof *made);
  if (!made) return false;
  *made = (unread){.transfer = *transfer, .paths_joined = paths_joined, .message = message, .request = request};
  if (request == MPI_REQUEST_NULL) {
    decline(made);
    end_unread(made);
    return true;
  }
  eb_lock();
  made->next = first_unread;
  first_unread = made;
  eb_unlock();
  return true;
}

int eb_unread_progress(void) {
  int num = 0;
  if (!__atomic_load_n(&first_unread, __ATOMIC_RELAXED)) return 0;
  eb_lock();
  for (unread **at = &first_unread; *at;) {
    unread *const of = *at;
    int has_come = 0;
    const int rc = PMPI_Test(&of->request, &has_come, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && !has_come) {
      num++;
      at = &of->next;
      continue;
    }
    if (rc == MPI_SUCCESS) decline(of);
    *at = of->next;
    end_unread(of);
  }
  eb_unlock();
  return num;
}

void eb_unread_cancel(void) {
  eb_lock();
  for (unread *of; (of = first_unread);) {
    first_unread = of->next;
    PMPI_Cancel(&of->request);
    PMPI_Wait(&of->request, MPI_STATUS_IGNORE);
    end_unread(of);
  }
  eb_unlock();
}
