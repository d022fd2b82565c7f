/* Feedback: a message from the receiver to the sender on when a start was complete. */
#ifndef EB_FEEDBACK_H
#define EB_FEEDBACK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  double done_s; /* when everything had arrived, by the receiver's clock */
  uint64_t start;
} eb_feedback;

/* Expected feedback. Its receive is posted at the start that it describes: an unexpected message could block other messages
 * of its sender (libfabric's tcp provider keeps 64 of those and then stops reading). */
typedef struct eb_expected_feedback eb_expected_feedback;

/* Sends a copy; returns an MPI code. */
int eb_feedback_send(int peer, int tag, const eb_feedback *feedback);

/* Posts the receive of a feedback message; returns an MPI code. */
int eb_feedback_expect(int peer, int tag, eb_expected_feedback **made);
/* Releases expected feedback, which becomes NULL (and may be NULL before). True if it had arrived. */
bool eb_feedback_take(eb_expected_feedback **expected, eb_feedback *feedback);
/* Drops feedback that has arrived and is no longer needed. */
void eb_feedback_collect(void);

/* At the end of the program feedback is no longer needed; feedback that has not arrived is finally cancelled. */
void eb_feedback_abandon(void);
int eb_feedback_num_expected(void);
void eb_feedback_cancel(void);

#endif
