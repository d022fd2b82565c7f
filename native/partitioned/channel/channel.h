/* A channel: one side of a partitioned transfer, from MPI_Psend_init or MPI_Precv_init until its request is freed. */
#ifndef EB_CHANNEL_H
#define EB_CHANNEL_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/communicator.h"
#include "partitioned/domain/domain.h"
#include "partitioned/segmentation/cost.h"
#include "partitioned/matching/matching.h"
#include "partitioned/segmentation/planner.h"
#include "partitioned/channel/requests.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/process/config.h"
#include "partitioned/process/world.h"

/* One cache line each, to avoid false sharing between threads on different segments. */
typedef struct {
  _Alignas(64) atomic_int num_unready; /* partitions of a sender that are not ready yet */
  int num_partitions; /* that overlap the segment */
  atomic_bool arrived; /* a test has seen it complete */
  double issued_s;     /* only for statistics */
} eb_segment_state;

/* Small, because a request may have thousands. If a channel has more segments than fit into 16 bits, the ranges are stored
 * separately: see eb_partition_segments. */
typedef struct {
  uint16_t first_segment, last_segment;
  _Atomic uint16_t done_at; /* the start in which it became ready, or was unpacked */
} eb_partition_state;

typedef struct {
  int first, last;
} eb_segment_range;

/* The number of starts whose times are kept; those of start s are at s % EB_NUM_RECORDS. */
enum { EB_NUM_RECORDS = 4 };

typedef struct eb_adaptation eb_adaptation; /* see adapt.c */

typedef struct eb_channel {
  eb_entry entry; /* first: the table of handles finds the channel by it */
  bool is_send, is_freed;
  bool is_refused; /* a receiver that cannot match its sender's setup */
  atomic_bool is_active; /* MPI_Parrived may ask while another thread completes the request */
  int peer, tag;
  int wire_peer; /* the peer's rank in the domain */
  eb_view *view;
  struct eb_channel *next_posted;

  /* The user's buffer. Types with gaps go through `staging`, packed partition by partition. */
  char *buffer;
  MPI_Datatype type; /* our duplicate; MPI_DATATYPE_NULL when partitions are contiguous bytes */
  MPI_Count count;
  MPI_Aint extent;
  int64_t element_bytes, partition_bytes, total_bytes;
  int num_partitions;
  char *staging;

  /* The wire. base < 0: a receiver that does not know its tags yet. */
  _Atomic int base; /* set last, by whichever thread takes the setup */
  int64_t first_id, num_ids; /* first_id 0: canonical */
  int lane;
  eb_mode mode;
  const eb_cost *cost;
  eb_segments segments;
  MPI_Request *requests; /* [segments.num + 1]; persistent; the last is the plan's, which is not */
  eb_segment_state *states;
  char *partitions; /* [num_partitions] of stride partition_stride */
  size_t partition_stride;
  eb_segment_range *wide_ranges; /* [num_partitions], or NULL where the partitions' states hold them */
  bool is_built;    /* requests fit the segments */
  atomic_bool is_deferred; /* a receiver was started before its setup arrived */
  bool is_status_pending;     /* a completion call has finished it and must still fill its status */
  int pending_code;    /* with this code */
  bool is_copying;  /* a sender's first start in a channel: see eb_channel_start */
  struct eb_pending_send **copies; /* [segments.num] their memory, until they are sent; NULL: not a start of this kind */
  atomic_bool is_accepted; /* the setup has been processed; of a receiver: and its sender has been notified */

  uint64_t num_starts;
  uint16_t generation; /* of the current start, never 0 */
  _Atomic int error;   /* from sending or matching; no later start succeeds */
  atomic_bool is_asked; /* a thread has asked for a partition while another one waits */
  atomic_flag testing; /* one thread at a time asks the MPI about a receiver's segments: MPI_Parrived and the status of a
                        * request may be asked for while another thread waits */

  /* Plans: what is sent or received in a start, and used from the next on. */
  uint64_t next_due; /* the start in which the next plan is sent */
  int64_t *plan;     /* [3 + max segments]: number of ends, total, start of the plan after it, ends */
  eb_segments next_segments; /* num 0: as now */
  eb_adaptation *adaptation; /* a sender's; NULL: no plan can be better */
  eb_expected_feedback *feedback[EB_NUM_RECORDS]; /* the sender's, of the last starts, or NULL */
  _Atomic double done_s[EB_NUM_RECORDS]; /* by each side's clock: the last partition ready, or everything arrived */
  _Atomic double spent_s[EB_NUM_RECORDS][2]; /* of a sender, from the start to the last partition: all, and in our own sends */
  int record; /* where this start's times go, or -1 */
  bool proposes; /* a sender that has not yet searched segmentations for the next plan */
  double started_s, clock_ahead_s; /* by the stopwatch; the clock less the stopwatch */
  float *ready_s; /* [num_partitions][EB_NUM_RECORDS] since the start, own_s taken off; NULL: not noted */
  _Atomic double last_pready_s; /* only for statistics */

  /* Written by the sending thread, while other threads mark partitions and only read the members above. */
  _Alignas(64) atomic_int num_unissued;
  _Atomic double own_s; /* spent in our own sends since the start */
  _Alignas(64) _Atomic double clock_overhead_s; /* and in reading the clock, by all threads */
} eb_channel;

static inline eb_partition_state *eb_partition(const eb_channel *channel, int partition) {
  return (eb_partition_state *)(channel->partitions + (size_t)partition * channel->partition_stride);
}

/* The segments that a partition overlaps. */
static inline eb_segment_range eb_partition_segments(const eb_channel *channel, int partition) {
  if (__builtin_expect(channel->wide_ranges != NULL, 0)) return channel->wide_ranges[partition];
  const eb_partition_state *state = eb_partition(channel, partition);
  return (eb_segment_range){state->first_segment, state->last_segment};
}

/* An announced sender whose receiver has not answered yet: the receiver may still refuse the transfer. */
static inline bool eb_channel_awaits_answer(const eb_channel *channel) {
  return channel->is_send && channel->first_id && !channel->is_accepted;
}

static inline const eb_agreement *eb_channel_agreement(const eb_channel *channel) {
  return &eb_world.agreements[channel->cost == &eb_world.config.inter_node];
}

/* All of these return MPI codes. None calls an error handler: the callers do, because they know the MPI call. */

typedef struct {
  bool is_send;
  void *buffer;
  int num_partitions;
  MPI_Count count;
  MPI_Datatype type;
  int peer, tag;
  int wire_peer; /* of a peer that is not MPI_PROC_NULL: its rank in the domain */
  MPI_Info info;
} eb_channel_arguments;

/* The arguments must be checked. On success *made has a handle in the table. */
int eb_channel_create(eb_view *view, const eb_channel_arguments *arguments, eb_channel **made);

int eb_channel_start(eb_channel *channel);

/* Marks a partition; the thread that completes a segment issues it. The partition must be in range and the
 * channel an active sender; MPI_ERR_ARG when the partition was marked before. Any number of threads. */
int eb_channel_pready(eb_channel *channel, int partition);

/* Has all of it arrived (or left)? Makes progress. When *done, nothing of the transfer is left but eb_channel_finish. */
int eb_channel_test(eb_channel *channel, bool *done);
/* Blocks until then. */
int eb_channel_wait(eb_channel *channel);
/* Unpacks, fills the status (unless it is MPI_STATUS_IGNORE) and makes the channel inactive. */
int eb_channel_finish(eb_channel *channel, MPI_Status *status);
/* Ends a start whose test or wait has failed with the code, which is returned. The two sides no longer agree on the messages
 * in flight, so no later start succeeds. */
int eb_channel_fail(eb_channel *channel, int code);
/* Unpacks a receiver's data if a test has found all of it: for calls that leave the request active. */
int eb_channel_deliver(eb_channel *channel);
/* Ends an active start without a wait, as MPI_Request_free may: of a receiver whose data has all arrived, of a sender whose
 * partitions are all ready. *ended false: data would be lost, and nothing was changed. *is_in_flight: the sender's data has
 * not left yet; the library continues to send it. Must not be called while another thread tests or waits. */
int eb_channel_end(eb_channel *channel, bool *ended, bool *is_in_flight);
/* Fills only the status, for MPI_Request_get_status. */
void eb_channel_fill_status(const eb_channel *channel, MPI_Status *status);
/* The empty status of an inactive or null request (MPI 4.1 section 3.7.3). */
void eb_status_empty(MPI_Status *status);

/* Has a receiver's partition arrived? Unpacks it if so. */
int eb_channel_parrived(eb_channel *channel, int partition, bool *arrived);

/* Frees an inactive channel; *handle becomes MPI_REQUEST_NULL. */
int eb_channel_free(eb_channel *channel, MPI_Request *handle);

/* A receiver's setup has arrived. Under eb_lock. */
void eb_channel_take_setup(eb_channel *channel, const eb_setup *setup);
/* A receiver notifies the sender that it has processed its setup and has posted the segments of its started requests. From
 * then on the sender may wait for the receiver, because the receiver posts receives in each start. Returns an MPI code. */
int eb_channel_accept(eb_channel *channel);
/* A sender's receiver has accepted or refused its setup. Under eb_lock. */
void eb_channel_take_answer(eb_channel *channel, int code);

/* Posts a receiver's segments that were started before their setup arrived, if it has arrived now; otherwise the channel stays
 * deferred. Only for the thread that holds `testing`. */
int eb_channel_post_deferred(eb_channel *channel);

/* Sends a segment: called only by issue.c, by one thread at a time. */
void eb_channel_issue(eb_channel *channel, int segment);

#endif
