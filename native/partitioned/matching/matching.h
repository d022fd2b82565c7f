/* Matches a sender with its receiver where their tags are not canonical.
 *
 * The sender sends a setup when its request is created; setups from one sender arrive in the order of creation (MPI's
 * non-overtaking rule), and each goes to the first receiver posted for that communicator, source and tag: the
 * matching order of MPI 4.1 section 4.2. The receiver answers when it has processed the setup.
 */
#ifndef EB_MATCHING_H
#define EB_MATCHING_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/communicator.h"
#include "partitioned/domain/transfer.h"

/* A channel's part in the matching. The members belong to matching.h and matching.c. */
typedef struct eb_match {
  const eb_transfer *transfer;
  struct eb_match *next_posted;
  int64_t first_id, num_ids; /* first_id 0: canonical tags, or a receiver that has no setup yet; num_ids 0: an id without tags */
  int lane;
  bool is_posted;          /* a receiver that waits for its setup */
  bool is_freed;           /* it does, although its request was freed */
  bool is_refused;         /* a receiver that cannot match its sender's setup */
  bool keeps_ids;          /* a receiver of which a receive with one of its tags is left */
  atomic_bool is_accepted; /* the setup has been processed; of a receiver: and its sender has been notified */
} eb_match;

typedef struct {
  uint64_t identity; /* of the communicator */
  int64_t total_bytes, step_bytes; /* step 0: canonical segments */
  int64_t first_id, num_ids;
  eb_spread spread;
  int32_t source; /* the sender's rank in the communicator */
  int32_t tag;
  int32_t lane; /* the first of the request */
} eb_setup;

/* What the layer above does with a receiver's setup, and with the refusal of a sender's. Both are called under eb_lock. */
typedef void eb_setup_handler(eb_match *match, const eb_setup *setup);
typedef void eb_refusal_handler(eb_match *match);

/* After the domain has begun. */
void eb_matching_begin(eb_setup_handler *setup, eb_refusal_handler *refusal);
/* Frees what was never matched. */
void eb_matching_end(void);

/* Functions that return int return MPI codes. */

/* A channel that needs no matching so far. The transfer must stay valid. */
static inline void eb_match_begin(eb_match *match, const eb_transfer *transfer) { *match = (eb_match){.transfer = transfer}; }

/* Takes ids for a sender and sends its setup. If too few tags are left, the channel gets an id without tags. */
int eb_match_announce(eb_match *match, const eb_view *view, int64_t step_bytes, int num_segments);
/* Posts a receiver on a communicator for its setup, which is passed to the handler now or in a later progress call. */
int eb_match_post(eb_match *match, uint64_t identity);

/* Of a channel that has ids: are they without tags? If not, the base of the tags, and the number of ids; and the lane. */
static inline bool eb_match_is_without_tags(const eb_match *match) { return match->num_ids == 0; }
static inline int64_t eb_match_first_id(const eb_match *match) { return match->first_id; }
int eb_match_base(const eb_match *match);
static inline int64_t eb_match_num_ids(const eb_match *match) { return match->num_ids; }
static inline int eb_match_lane(const eb_match *match) { return match->lane; }

/* A receiver that has processed its setup and has posted the segments of its started request reports so to the sender, once. From
 * then on the sender may wait for the receiver, because the receiver posts receives in each start. */
int eb_match_accept(eb_match *match);
int eb_match_refuse(eb_match *match);

static inline bool eb_match_is_accepted(const eb_match *match) { return match->is_accepted; }
/* An announced sender whose receiver has not answered yet: the receiver may still refuse the transfer. */
static inline bool eb_match_awaits_answer(const eb_match *match) {
  return match->transfer->is_send && match->first_id && !match->is_accepted;
}

/* The request is freed. False: a receiver that must stay until its setup arrives. Under eb_lock. */
bool eb_match_leave(eb_match *match);
static inline bool eb_match_is_freed(const eb_match *match) { return match->is_freed; }
/* The ids of a receiver are not used again: a receive with one of its tags is left, which would take a later transfer's message. */
static inline void eb_match_keep_ids(eb_match *match) { match->keeps_ids = true; }
/* A receiver no longer needs its ids. */
int eb_match_release(const eb_match *match);

/* Processes the setups that have arrived. */
void eb_matching_progress(void);
/* Processes the answers that have arrived. */
void eb_matching_collect(void);
/* Posted receivers whose setup has not arrived, except freed ones. A waiting thread reads it without the lock. */
int eb_matching_num_posted(void);

#endif
