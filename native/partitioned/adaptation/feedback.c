/* Posts the receives of feedback and keeps them until it has arrived. */
#include "partitioned/adaptation/feedback.h"

#include <stdlib.h>

#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/process/world.h"

int eb_feedback_send(int peer, int tag, const eb_feedback *feedback) {
  return eb_send_queue_send(EB_SEND_CONTROL, feedback, sizeof *feedback, peer, tag, eb_domain.comm);
}

struct eb_expected_feedback {
  eb_expected_feedback *next, **at; /* among all of them */
  MPI_Request request;
  bool is_wanted; /* the caller of eb_feedback_expect holds a pointer to it */
  eb_feedback feedback;
};

static eb_expected_feedback *expected_list; /* their receives are posted */
static int num_expected;

static void drop(eb_expected_feedback *expected) {
  *expected->at = expected->next;
  if (expected->next) expected->next->at = expected->at;
  num_expected--;
  free(expected);
}

static bool has_arrived(eb_expected_feedback *expected) {
  int flag = 0;
  /* A failed receive is complete, too; its content belongs to no start. */
  return PMPI_Test(&expected->request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag;
}

/* Under eb_lock: those that are no longer needed. */
static void drop_unwanted(void) {
  for (eb_expected_feedback *expected = expected_list; expected;) {
    eb_expected_feedback *const next = expected->next;
    if (!expected->is_wanted && has_arrived(expected)) drop(expected);
    expected = next;
  }
}

void eb_feedback_collect(void) {
  eb_lock();
  drop_unwanted();
  eb_unlock();
}

int eb_feedback_expect(int peer, int tag, eb_expected_feedback **made) {
  eb_feedback_collect();
  eb_expected_feedback *expected = calloc(1, sizeof *expected);
  if (!expected) return MPI_ERR_NO_MEM;
  eb_feedback *const into = &expected->feedback;
  const int rc = PMPI_Irecv(into, sizeof *into, MPI_BYTE, peer, tag, eb_domain.comm, &expected->request);
  if (rc != MPI_SUCCESS) {
    free(expected);
    return rc;
  }
  expected->is_wanted = true;
  eb_lock();
  expected->next = expected_list;
  expected->at = &expected_list;
  if (expected->next) expected->next->at = &expected->next;
  expected_list = expected;
  num_expected++;
  eb_unlock();
  *made = expected;
  return MPI_SUCCESS;
}

bool eb_feedback_take(eb_expected_feedback **expected, eb_feedback *feedback) {
  bool arrived = false;
  if (!*expected) return false;
  eb_lock();
  if (has_arrived(*expected)) {
    arrived = true;
    *feedback = (*expected)->feedback;
    drop(*expected);
  } else {
    (*expected)->is_wanted = false; /* it stays posted, because it will arrive */
  }
  eb_unlock();
  *expected = NULL;
  return arrived;
}

int eb_feedback_num_expected(void) { return num_expected; }

void eb_feedback_abandon(void) {
  eb_lock();
  for (eb_expected_feedback *expected = expected_list; expected; expected = expected->next) expected->is_wanted = false;
  eb_unlock();
}

void eb_feedback_cancel(void) {
  eb_lock();
  while (expected_list) {
    PMPI_Cancel(&expected_list->request);
    PMPI_Wait(&expected_list->request, MPI_STATUS_IGNORE);
    drop(expected_list);
  }
  eb_unlock();
}
