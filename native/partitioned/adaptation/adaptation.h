/* How a channel's segments follow the program: the sender observes its starts and asks the policy of its kind, and the two sides
 * exchange what that decides; the receiver sends feedback. Functions that return int return MPI codes.
 *
 * The sender sends a segmentation message in the starts that the last one named: which segments are used from the next start on,
 * which others for a few starts in between, in which starts the receiver sends feedback, and the start of the next message. */
#ifndef EB_ADAPTATION_H
#define EB_ADAPTATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/adaptation/learned.h"
#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/wire/wire.h"

/* What a sender records while starts are observed. */
typedef struct eb_record eb_record;

/* The members belong to adaptation.h and adaptation.c. */
typedef struct {
  const eb_transfer *transfer;
  eb_wire *wire;
  uint64_t start;    /* the current one, from 1 */
  uint64_t next_due; /* the start in which the next segmentation message is sent */
  int64_t *message;  /* the last one while something of it is still to be done, or the receive's memory: see message.h */
  uint64_t feedback_from, feedback_end; /* the starts with feedback that the last message named */
  eb_kind *kind;            /* a sender's, once it is known */
  uint64_t reported;        /* starts that the kind's policy knows of */
  eb_record *record;        /* NULL: nothing is observed */
  float *ready_s;           /* [num_partitions][EB_POLICY_NUM_READY], without the library's sends; NULL: not noted */
  double arrived_s;         /* a receiver's */
  int stride, num_ready;    /* readiness is noted for each stride-th partition, in so many starts before a message */
  unsigned paths_without_memory; /* bits, of a sender for which none was left */
  bool adapts;              /* a sender some segmentation may make faster, of not too many partitions */
  bool is_check;            /* readiness is noted before the next message */
  bool is_observed;         /* the times of this start are taken */
  bool is_counted;          /* among the senders that observe a start, until it is finished */
  bool proposes;            /* a sender that has not yet looked for its kind for the next message */
} eb_adaptation;

/* Both pointers must stay valid. */
int eb_adaptation_begin(eb_adaptation *adaptation, const eb_transfer *transfer, eb_wire *wire);
void eb_adaptation_end(eb_adaptation *adaptation);

/* The segments of a start, which begins: num 0: those in use; otherwise the caller owns them. */
int eb_adaptation_take_segments(eb_adaptation *adaptation, uint64_t start, eb_segments *segments);

/* Begins a start, whose segments are in use: the sender decides and sends the segmentation message that is due, the receiver
 * posts its receive. Expects feedback. */
int eb_adaptation_start(eb_adaptation *adaptation, uint64_t start);
/* A sender has begun the start: times count from now on. */
void eb_adaptation_set_started(eb_adaptation *adaptation);

/* Are the times of this start taken? */
static inline bool eb_adaptation_is_observed(const eb_adaptation *adaptation) { return adaptation->is_observed; }
/* And readiness for each partition? */
static inline bool eb_adaptation_notes_ready(const eb_adaptation *adaptation) { return adaptation->ready_s != NULL; }

/* Of an observed start: a partition is ready; the last partition of a segment is, which is sent next; this thread has sent a segment,
 * which took spent_s; everything has arrived. */
void eb_adaptation_note_ready(eb_adaptation *adaptation, int partition);
void eb_adaptation_note_complete(eb_adaptation *adaptation);
void eb_adaptation_note_sent(eb_adaptation *adaptation, double spent_s);
void eb_adaptation_note_arrived(eb_adaptation *adaptation);

/* The sender looks for better segments while its last message is in flight, when it would otherwise be idle. Only for the
 * thread that waits. */
static inline bool eb_adaptation_proposes(const eb_adaptation *adaptation) { return adaptation->proposes; }
void eb_adaptation_propose(eb_adaptation *adaptation);

/* A sender has finished an observed start. */
void eb_adaptation_set_finished(eb_adaptation *adaptation);

/* A receiver that has finished an observed start applies the message received with it, and sends feedback if the sender expects
 * it. */
int eb_adaptation_finish(eb_adaptation *adaptation);

/* A receiver has failed in a start: what the message of that start names, if one is due, is declined, as soon as it has come:
 * true if it is still awaited, so that its tag is in use. */
bool eb_adaptation_abandon(eb_adaptation *adaptation);

#endif
