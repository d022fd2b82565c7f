/* Control messages: setups, which announce a transfer without canonical tags to its receiver, and the answers of receivers
 * to senders.
 *
 * The sender sends a setup when its request is created; setups from one sender arrive in the order of creation (MPI's
 * non-overtaking rule), and each goes to the first receiver posted for that communicator, source and tag: the
 * matching order of MPI 4.1 section 4.2.
 */
#ifndef EB_MATCHING_H
#define EB_MATCHING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/segmentation/planner.h"

struct eb_channel;

typedef struct {
  uint64_t identity; /* of the communicator */
  int64_t total_bytes, step_bytes; /* step 0: canonical segments */
  int64_t first_id, num_ids;
  int32_t source; /* the sender's rank in the communicator */
  int32_t tag;
  int32_t lane;
} eb_setup;

/* A receiver's feedback on a start. */
typedef struct {
  double done_s; /* when everything had arrived, by its clock */
  uint64_t start;
} eb_feedback;

/* Expected feedback. Its receive is posted at the start that it describes: an unexpected message could block other messages
 * of its sender (libfabric's tcp provider keeps 64 of those and then stops reading). */
typedef struct eb_expected_feedback {
  struct eb_expected_feedback *next, **at; /* among all of them */
  MPI_Request request;
  bool is_wanted; /* a channel holds a pointer to it */
  eb_feedback feedback;
} eb_expected_feedback;

/* Sends a sender's setup; returns an MPI error code. */
int eb_matching_announce(struct eb_channel *channel, const eb_setup *setup);

/* Posts a receiver for its setup, which is passed to eb_channel_take_setup, now or in a later progress call. Returns an MPI error
 * code. */
int eb_matching_post(struct eb_channel *channel);

/* Processes the setups that have arrived. */
void eb_matching_progress(void);
/* Posted receivers whose setup has not arrived, except freed ones. A waiting thread reads it without the lock. */
int eb_matching_num_posted(void);
/* A posted receiver was freed: it stays posted, but no thread waits for it. Under eb_lock. */
void eb_matching_disown(void);

/* A receiver's answers to a sender: its setup was accepted, or refused because the totals differ, or the receiver was freed.
 * Each returns an MPI error code. */
int eb_matching_accept(int sender, int64_t first_id);
int eb_matching_refuse(int sender, int64_t first_id);
/* Several releases travel in one message, or with an answer of the other kinds. */
int eb_matching_release(int sender, int64_t first_id, int64_t num_ids);
/* The sender processes the answers, and drops feedback that is no longer needed. */
void eb_matching_collect(void);

/* Posts the receive of a feedback message; returns an MPI error code. */
int eb_matching_expect_feedback(int peer, int tag, eb_expected_feedback **made);
/* Releases expected feedback, which becomes NULL (and may be NULL before). True if it had arrived. */
bool eb_matching_take_feedback(eb_expected_feedback **expected, eb_feedback *feedback);
/* At the end of the program feedback is no longer needed; feedback that has not arrived is finally cancelled. */
void eb_matching_abandon_feedback(void);
int eb_matching_num_expected_feedback(void);
void eb_matching_cancel_feedback(void);

/* Frees what was never matched. */
void eb_matching_end(void);

#endif
