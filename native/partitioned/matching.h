/* Control messages: setups, by which a receiver learns of a transfer that has no canonical tags, and what receivers
 * answer to senders.
 *
 * The sender sends one when its request is made; setups from one sender arrive in the order of making (MPI's
 * non-overtaking rule), and each goes to the first receiver posted for that communicator, source and tag: the
 * matching order of MPI 4.1 section 4.2.
 */
#ifndef EB_MATCHING_H
#define EB_MATCHING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/plan.h"

struct eb_channel;

typedef struct {
  uint64_t identity; /* of the communicator */
  int64_t total_bytes, step_bytes; /* step 0: canonical segments */
  int64_t first_id, num_ids;
  int32_t source; /* the sender's rank in the communicator */
  int32_t tag;
  int32_t lane;
} eb_setup;

/* What a receiver reports of a start. */
typedef struct {
  double done_s; /* when everything had arrived, by its clock */
  uint64_t start;
} eb_feedback;

/* Feedback that is to come. Its receive is posted at the start of which it tells: a message that nobody has asked for
 * could hold up other messages of its sender (libfabric's tcp provider keeps 64 of those and reads no further). */
typedef struct eb_expected_feedback {
  struct eb_expected_feedback *next, **at; /* among all of them */
  MPI_Request request;
  bool is_wanted; /* somebody holds a pointer to it */
  eb_feedback feedback;
} eb_expected_feedback;

/* Sends a sender's setup; returns an MPI error code. */
int eb_matching_announce(struct eb_channel *channel, const eb_setup *setup);

/* Posts a receiver for its setup, which is given by eb_channel_take_setup, now or in a later progress. Returns an MPI error
 * code. */
int eb_matching_post(struct eb_channel *channel);

/* Takes the setups that have come. */
void eb_matching_progress(void);
/* Posted receivers whose setup has not come, but for those that were freed. Who waits looks without the lock. */
int eb_matching_num_posted(void);
/* A posted receiver was freed: it stays posted, but nobody waits for it. Under eb_lock. */
void eb_matching_disown(void);

/* What receivers answer to a sender: its setup was taken, or was refused because the totals differ, or the receiver was
 * freed. Each returns an MPI error code. */
int eb_matching_accept(int sender, int64_t first_id);
int eb_matching_refuse(int sender, int64_t first_id);
/* Several releases travel in one message, or with an answer of the other kinds. */
int eb_matching_release(int sender, int64_t first_id, int64_t num_ids);
/* The sender takes these in, and the feedback that nobody wants any more. */
void eb_matching_collect(void);

/* Posts the receive of a feedback message; returns an MPI error code. */
int eb_matching_expect_feedback(int peer, int tag, eb_expected_feedback **made);
/* Lets go of expected feedback, which becomes NULL (as it may have been). True when it had come. */
bool eb_matching_take_feedback(eb_expected_feedback **expected, eb_feedback *feedback);
/* At the end of the program nobody wants them any more; those that have not come when nobody waits any longer are
 * cancelled. */
void eb_matching_abandon_feedback(void);
int eb_matching_num_expected_feedback(void);
void eb_matching_cancel_feedback(void);

/* Forgets what was never matched. */
void eb_matching_end(void);

#endif
