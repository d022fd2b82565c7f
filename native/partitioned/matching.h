/* Control messages: setups, by which a receiver learns of a transfer that has no canonical tags, and what
 * receivers tell senders.
 *
 * The sender sends one when its request is made; setups from one sender arrive in the order of making (MPI's
 * non-overtaking rule), and each goes to the first receiver that expects that communicator, source and tag: the
 * matching order of MPI 4.1 section 4.2.
 */
#ifndef EB_MATCHING_H
#define EB_MATCHING_H

#include <stdint.h>

#include "partitioned/communicator.h"
#include "partitioned/plan.h"

typedef struct eb_setup {
  uint64_t context;
  int64_t total_bytes, step_bytes; /* step 0: canonical segments */
  int64_t first_id, num_ids;
  int32_t tag;
  int32_t lane;
  int32_t source; /* filled in by the receiver */
  struct eb_setup *next;
} eb_setup;

/* What a receiver tells of the starts before a plan. */
typedef struct {
  double done_s[EB_PLAN_RECORDS]; /* when everything had arrived, by its clock */
  uint64_t start;                 /* the last of them */
} eb_report;

/* A report that is to come. Its receive is posted at the start of which it tells: a report that nobody has asked for
 * could hold up other messages of its sender (libfabric's tcp provider keeps 64 of those and reads no further). */
typedef struct eb_expected_report {
  struct eb_expected_report *next, **at; /* among those of the shadow */
  MPI_Request request;
  bool is_wanted; /* somebody holds a pointer to it */
  eb_report report;
} eb_expected_report;

/* Sends a setup; returns an MPI error code. */
int eb_matching_announce(eb_shadow *shadow, int peer, const eb_setup *setup);

/* A receiver wants its setup. It is given by eb_channel_take_setup, now or in a later progress. */
void eb_matching_expect(struct eb_channel *channel);

/* Takes what has come. */
void eb_matching_progress(eb_shadow *shadow);
/* All control messages on all communicators. */
void eb_matching_progress_all(void);

/* The receiver needs the ids no more; returns an MPI error code. Several releases travel in one message, the last of
 * them when the user's communicator goes. */
int eb_matching_release(eb_shadow *shadow, int peer, int64_t first_id, int64_t num_ids);
int eb_matching_flush_releases(eb_shadow *shadow);
/* The sender takes in what receivers have released, and the reports that nobody wants any more. */
void eb_matching_collect(eb_shadow *shadow);

/* Posts the receive of a report; returns an MPI error code. */
int eb_matching_expect_report(eb_shadow *shadow, int peer, int tag, eb_expected_report **made);
/* Lets go of an expected report, which becomes NULL (as it may have been). True when it had come. */
bool eb_matching_take_report(eb_shadow *shadow, eb_expected_report **expected, eb_report *report);
/* At the end of the program nobody wants them any more; those that have not come when nobody waits any longer are
 * cancelled. */
void eb_matching_abandon_reports(void);
int eb_matching_num_expected_reports(void);
void eb_matching_cancel_reports(void);

/* Drops what was never matched, when the shadow goes. */
void eb_matching_forget(eb_shadow *shadow);

#endif
