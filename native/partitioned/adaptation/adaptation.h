/* How a channel's segments follow the program: the sender observes its starts, searches for the segments that take least time,
 * and sends them to the receiver; the receiver sends feedback. Functions that return int return MPI codes.
 *
 * The sender decides when it sends a segmentation message; each of them contains the start of the next one. The segments of a
 * message are used from the start after it. */
#ifndef EB_ADAPTATION_H
#define EB_ADAPTATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/adaptation/feedback.h"
#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/wire/wire.h"

/* The number of starts whose times are kept; those of start s are at s % EB_NUM_RECORDS. */
enum { EB_NUM_RECORDS = 4 };

typedef struct eb_trial eb_trial;

/* Of a sender: until the last partition of a start. */
typedef struct {
  _Atomic double all_s;    /* without the sends of other channels */
  _Atomic double own_s;    /* in the sends of this channel */
  _Atomic double others_s; /* in those of others, by the thread of the last partition */
} eb_time_spent;

/* The members belong to adaptation.h and adaptation.c. */
typedef struct {
  const eb_transfer *transfer;
  eb_wire *wire;
  uint64_t start;            /* the current one, from 1 */
  uint64_t next_due;         /* the start in which the next segmentation message is sent */
  int64_t *message;          /* see adaptation.c */
  eb_segments next_segments; /* num 0: as now */
  eb_trial *trial;           /* a sender's; NULL: of one partition, which no segmentation makes faster, or of very many */
  eb_expected_feedback *feedback[EB_NUM_RECORDS]; /* the sender's, of the last starts, or NULL */
  _Atomic double done_s[EB_NUM_RECORDS];     /* by each side's clock: the last partition ready, or everything arrived */
  eb_time_spent spent[EB_NUM_RECORDS];
  int record;       /* where this start's times go */
  bool is_observed; /* they are taken */
  bool is_counted;  /* among the senders that observe a start, until it is finished */
  bool proposes;    /* a sender that has not yet searched segmentations for the next message */
  double started_s, clock_ahead_s; /* by the stopwatch; the clock less the stopwatch */
  float *ready_s; /* [num_partitions][EB_NUM_RECORDS] since the start, without the library's sends; NULL: not noted */
  /* Written and read by all threads that mark partitions in an observed start. */
  _Alignas(64) _Atomic double own_s; /* spent in the sends of this channel since the start */
} eb_adaptation;

/* Both pointers must stay valid. */
int eb_adaptation_begin(eb_adaptation *adaptation, const eb_transfer *transfer, eb_wire *wire);
void eb_adaptation_end(eb_adaptation *adaptation);

/* The segments that the last message named, if they differ from those in use: the caller owns them. */
bool eb_adaptation_take_segments(eb_adaptation *adaptation, eb_segments *segments);

/* Begins a start, whose segments are in use: the sender decides and sends the segmentation message that is due, the receiver
 * posts its receive. Selects the record for the times of the start, and expects feedback. */
int eb_adaptation_start(eb_adaptation *adaptation, uint64_t start);
/* A sender has begun the start: times count from now on. */
void eb_adaptation_set_started(eb_adaptation *adaptation);

/* Are the times of this start taken? */
static inline bool eb_adaptation_is_observed(const eb_adaptation *adaptation) { return adaptation->is_observed; }

/* Of an observed start: a partition is ready; this thread has sent a segment, which took spent_s; everything has arrived. */
void eb_adaptation_note_ready(eb_adaptation *adaptation, int partition);
void eb_adaptation_note_sent(eb_adaptation *adaptation, double spent_s);
void eb_adaptation_note_arrived(eb_adaptation *adaptation);

/* The sender searches for better segments while its last message is in flight, when it would otherwise be idle. Only for the
 * thread that waits. */
static inline bool eb_adaptation_proposes(const eb_adaptation *adaptation) { return adaptation->proposes; }
void eb_adaptation_propose(eb_adaptation *adaptation);

/* A sender has finished an observed start. */
void eb_adaptation_set_finished(eb_adaptation *adaptation);

/* A receiver that has finished an observed start applies the message received with it, and sends feedback if the sender expects
 * it. */
int eb_adaptation_finish(eb_adaptation *adaptation);

#endif
