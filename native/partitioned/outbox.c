/* Keeps sent copies until they have left. */
#include "partitioned/outbox.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/world.h"

typedef struct letter {
  struct letter *next;
  MPI_Request request;
  eb_letter_kind kind;
  char bytes[];
} letter;

static letter *letters, **last_letter = &letters; /* in turn of being asked about */
static atomic_int num_letters[2];                 /* of each kind */

/* Asked about at once: this is called by every start and test. */
enum { MAX_ASKED = 16 };

int eb_outbox_num_data(void) { return atomic_load_explicit(&num_letters[EB_LETTER_DATA], memory_order_relaxed); }

int eb_outbox_num_control(void) {
  return atomic_load_explicit(&num_letters[EB_LETTER_CONTROL], memory_order_relaxed);
}

static void append(letter *made) {
  made->next = NULL;
  *last_letter = made;
  last_letter = &made->next;
}

int eb_outbox_send(eb_letter_kind kind, const void *bytes, size_t num_bytes, int peer, int tag, MPI_Comm comm) {
  letter *made = malloc(sizeof *made + num_bytes);
  if (!made) return MPI_ERR_NO_MEM;
  if (num_bytes) memcpy(made->bytes, bytes, num_bytes);
  const int rc = PMPI_Isend(made->bytes, (int)num_bytes, MPI_BYTE, peer, tag, comm, &made->request);
  if (rc != MPI_SUCCESS) {
    free(made);
    return rc;
  }
  eb_lock();
  made->kind = kind;
  append(made);
  num_letters[kind]++;
  eb_unlock();
  return MPI_SUCCESS;
}

void eb_outbox_progress(void) {
  if (eb_outbox_num_data() + eb_outbox_num_control() == 0) return;
  eb_lock();
  int num = eb_outbox_num_data() + eb_outbox_num_control();
  if (num > MAX_ASKED) num = MAX_ASKED;
  for (; num > 0 && letters; num--) {
    letter *const here = letters;
    int left = 0;
    letters = here->next;
    if (!letters) last_letter = &letters;
    if (PMPI_Test(&here->request, &left, MPI_STATUS_IGNORE) != MPI_SUCCESS) left = 1;
    if (!left) {
      append(here);
    } else {
      num_letters[here->kind]--;
      free(here);
    }
  }
  eb_unlock();
}
