/* Observes a channel's starts, and carries what the policy of its kind decides to the other side. */
#include "partitioned/adaptation/adaptation.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/adaptation/feedback.h"
#include "partitioned/adaptation/message.h"
#include "partitioned/adaptation/unread.h"
#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/send_time.h"
#include "partitioned/wire/asked_path.h"
#include "partitioned/wire/tracking.h"

#define NEVER UINT64_MAX

/* Starts whose times are kept; those of start s are at s % NUM_RECORDS. */
enum { NUM_RECORDS = EB_POLICY_MAX_OBSERVED };

/* Of a start, until its last partition was ready. */
typedef struct {
  _Atomic double done_s;   /* by the clock */
  _Atomic double all_s;    /* without the sends of other channels */
  _Atomic double own_s;    /* in the sends of this channel */
  _Atomic double others_s; /* in those of others, by the thread of the last partition */
  atomic_int num_together; /* senders whose starts were observed at this time, this one included */
} start_times;

struct eb_record {
  start_times times[NUM_RECORDS];
  eb_expected_feedback *feedback[NUM_RECORDS]; /* or NULL */
  double began_s;                              /* the first of them */
  double started_s, clock_ahead_s;             /* this start, by the stopwatch; the clock less the stopwatch */
  eb_send_time before[EB_SEND_TIME_PLACES];    /* what threads had spent in sends when the start began */
  /* Written and read by all threads that mark partitions in an observed start. */
  _Alignas(64) _Atomic double own_s; /* spent in the sends of this channel since the start */
};

/* Both sides compute the same result; a transfer of more segments than a message can hold keeps the canonical ones. */
static bool exchanges(const eb_transfer *transfer) {
  return eb_world.config.mode.kind == EB_AUTO && !eb_transfer_is_null(transfer) && transfer->total_bytes > 0 &&
         transfer->total_bytes / EB_SEGMENT_MAX_BYTES < eb_tags_max_segments(&eb_domain.tags);
}

static bool is_small(const eb_transfer *transfer) {
  return transfer->total_bytes < eb_transfer_agreement(transfer)->least_adapted_bytes;
}

/* For less the system's call takes as long as the copy. A sender of so much waits for its receiver by messages, too. */
#define MIN_DIRECT_BYTES (INT64_C(64) * 1024)

/* The costs of another path, if the policy may choose it; otherwise NULL. */
static const eb_cost *cost_of(const eb_adaptation *own, eb_path path) {
  const eb_cost *const cost = path == EB_PATH_RING ? &eb_world.config.node_ring : &eb_world.config.node_direct;
  const bool is_possible = eb_world.config.node_path == EB_NODE_AUTO && cost->num > 0 &&
                           !(own->paths_without_memory & 1U << path) &&
                           (path == EB_PATH_RING || own->transfer->total_bytes >= MIN_DIRECT_BYTES);
  return is_possible && eb_wire_may_use(own->wire, path) ? cost : NULL;
}

static bool is_due(const eb_adaptation *own) { return own->start == own->next_due; }

/* Does the receiver send feedback? Asked once the message of this start is known; every start with feedback is observed. */
static bool has_feedback(const eb_adaptation *own) { return own->start >= own->feedback_from && own->start < own->feedback_end; }

/* The first message follows start 1 where it is in start 2. */
static bool is_ready_noted(const eb_adaptation *own) {
  return own->adapts && own->is_check && own->start < own->next_due && own->start + (uint64_t)own->num_ready >= own->next_due;
}

/* Of partitions of small transfers only the first and the last ones matter. */
enum { NUM_NOTED_OF_SMALL = 16 };

int eb_adaptation_begin(eb_adaptation *own, const eb_transfer *transfer, eb_wire *wire) {
  own->transfer = transfer;
  own->wire = wire;
  own->next_due = exchanges(transfer) ? eb_policy_first_message(is_small(transfer)) : NEVER;
  if (!transfer->is_send || transfer->mode.kind != EB_AUTO || own->next_due == NEVER) return MPI_SUCCESS;
  if (transfer->num_partitions == 1 && !eb_planner_can_gain(transfer->cost, transfer->total_bytes, transfer->partition_bytes) &&
      !eb_planner_gains_by_ring(transfer->cost, cost_of(own, EB_PATH_RING), transfer->total_bytes))
    return MPI_SUCCESS;
  /* The times of more partitions than that would take more memory than their data. */
  own->adapts = own->is_check = transfer->num_partitions <= EB_MAX_PARTITION_STATES;
  /* Short transfers of many partitions may not spend their time on clock readings, and gain little from knowing each. */
  const int num_noted = is_small(transfer) ? NUM_NOTED_OF_SMALL : EB_CUT_MAX_SEGMENTS;
  own->stride = eb_planner_is_short(transfer->total_bytes) ? 1 + (transfer->num_partitions - 1) / num_noted : 1;
  own->num_ready = is_small(transfer) ? 1 : EB_POLICY_NUM_READY;
  return MPI_SUCCESS;
}

static void set_counted(eb_adaptation *own, bool is_counted) {
  if (own->is_counted != is_counted) eb_send_time_observe(is_counted ? 1 : -1);
  own->is_counted = is_counted;
}

static void drop_record(eb_adaptation *own) {
  eb_feedback ignored;
  for (int r = 0; own->record && r < NUM_RECORDS; r++) (void)eb_feedback_take(&own->record->feedback[r], &ignored);
  free(own->record);
  own->record = NULL;
}

static void drop_ready(eb_adaptation *own) {
  free(own->ready_s);
  own->ready_s = NULL;
}

/* Messages are rare, and there may be thousands of requests. */
static void drop_message(eb_adaptation *own) {
  free(own->message);
  own->message = NULL;
}

void eb_adaptation_end(eb_adaptation *own) {
  set_counted(own, false);
  eb_kind_leave(own->kind, own);
  drop_record(own);
  drop_ready(own);
  drop_message(own);
}

int eb_adaptation_take_segments(eb_adaptation *own, uint64_t start, eb_segments *segments) {
  const int64_t *const message = own->message;
  segments->num = 0;
  if (!message) return MPI_SUCCESS;
  const uint64_t next = (uint64_t)message[EB_MESSAGE_START] + 1, from = (uint64_t)message[EB_MESSAGE_TRIAL_FROM];
  const uint64_t end = (uint64_t)message[EB_MESSAGE_TRIAL_END];
  const int num = (int)message[EB_MESSAGE_NUM], num_tried = (int)message[EB_MESSAGE_NUM_TRIED];
  const bool is_trial = num_tried > 0 && start >= from && start < end;
  if (start != next && (num_tried == 0 || (start != from && start != end))) return MPI_SUCCESS;
  eb_segments made;
  if (eb_segments_from_ends(is_trial ? num_tried : num, message + EB_MESSAGE_ENDS + (is_trial ? num : 0), &made) != 0)
    return MPI_ERR_NO_MEM;
  made.spread = eb_message_spread(message);
  for (int path = EB_PATH_RING; path < EB_NUM_PATHS; path++) /* segments were sent through it in the last start */
    if (!eb_message_names(message, path)) eb_wire_leave_memory(own->wire, (eb_path)path);
  made.path = (eb_path)message[is_trial ? EB_MESSAGE_TRIED_PATH : EB_MESSAGE_PATH];
  if (num_tried == 0 || start >= end) drop_message(own);
  if (eb_segments_equal(&made, eb_wire_segments(own->wire))) eb_segments_free(&made);
  else *segments = made;
  return MPI_SUCCESS;
}

/* ---- The times of a start ---- */

static start_times *times_of(const eb_adaptation *own, uint64_t start) { return &own->record->times[start % NUM_RECORDS]; }

static int expect_feedback(eb_adaptation *own) {
  eb_expected_feedback **const expected = &own->record->feedback[own->start % NUM_RECORDS];
  eb_feedback unread;
  (void)eb_feedback_take(expected, &unread);
  return eb_feedback_expect(own->transfer->wire_peer, eb_wire_feedback_tag(own->wire), expected);
}

static int observe_start(eb_adaptation *own) {
  const bool is_noted = is_ready_noted(own);
  if (!own->transfer->is_send) {
    own->is_observed = is_due(own) || has_feedback(own);
    return MPI_SUCCESS;
  }
  own->is_observed = own->adapts && (has_feedback(own) || is_noted);
  set_counted(own, own->is_observed);
  own->proposes = false;
  if (!own->is_observed) return MPI_SUCCESS;
  if (!own->record) {
    own->record = aligned_alloc(64, sizeof *own->record);
    if (!own->record) return MPI_ERR_NO_MEM;
    memset(own->record, 0, sizeof *own->record);
    own->record->began_s = eb_now_s();
  }
  if (is_noted && !own->ready_s) /* without it nothing is proposed */
    own->ready_s = calloc((size_t)own->transfer->num_partitions, EB_POLICY_NUM_READY * sizeof *own->ready_s);
  own->proposes = own->ready_s && own->start + 1 == own->next_due;
  return has_feedback(own) ? expect_feedback(own) : MPI_SUCCESS;
}

void eb_adaptation_set_started(eb_adaptation *own) {
  if (!own->is_observed) return;
  atomic_store_explicit(&own->record->own_s, 0, memory_order_relaxed);
  eb_send_time_read(own->record->before);
  own->record->started_s = eb_stopwatch_s();
  own->record->clock_ahead_s = eb_now_s() - own->record->started_s;
}

/* What this thread spent in sends since the start, of this channel and of others; a send that began before the start is counted as
 * a whole. */
typedef struct {
  double spent_s, sends_s, own_s, readings_s;
} time_spent;

static time_spent spent_until(const eb_adaptation *own, double now_s) {
  const double own_s = atomic_load_explicit(&own->record->own_s, memory_order_relaxed), spent_s = now_s - own->record->started_s;
  const eb_send_time since = eb_send_time_since(own->record->before);
  return (time_spent){spent_s, since.sends_s < spent_s ? since.sends_s : spent_s, own_s, since.readings_s};
}

void eb_adaptation_note_ready(eb_adaptation *own, int partition) {
  if (!own->ready_s || partition % own->stride != 0) return;
  const time_spent spent = spent_until(own, eb_stopwatch_s());
  const double ready_s = spent.spent_s - spent.sends_s - spent.readings_s;
  own->ready_s[(size_t)partition * EB_POLICY_NUM_READY + own->start % EB_POLICY_NUM_READY] = (float)(ready_s > 0 ? ready_s : 0);
  eb_send_time_add_reading(eb_clock.read_s);
}

/* The last one that is complete stays, whichever thread notes it. */
void eb_adaptation_note_complete(eb_adaptation *own) {
  const double now_s = eb_stopwatch_s();
  const time_spent spent = spent_until(own, now_s);
  const double others_s = spent.sends_s > spent.own_s ? spent.sends_s - spent.own_s : 0;
  start_times *const times = times_of(own, own->start);
  atomic_store_explicit(&times->done_s, own->record->clock_ahead_s + now_s, memory_order_relaxed);
  atomic_store_explicit(&times->all_s, spent.spent_s - others_s, memory_order_relaxed);
  atomic_store_explicit(&times->own_s, spent.own_s, memory_order_relaxed);
  atomic_store_explicit(&times->others_s, others_s, memory_order_relaxed);
  atomic_store_explicit(&times->num_together, eb_send_time_num(), memory_order_relaxed);
  eb_send_time_add_reading(eb_clock.read_s);
}

void eb_adaptation_note_sent(eb_adaptation *own, double spent_s) { eb_add_s(&own->record->own_s, spent_s); }

void eb_adaptation_set_finished(eb_adaptation *own) { set_counted(own, false); }

void eb_adaptation_note_arrived(eb_adaptation *own) { own->arrived_s = eb_now_s(); }

/* ---- What the sender decides ---- */

/* The most segments that a message may name, so that with the cuts at EB_SEGMENT_MAX_BYTES they still fit the tags. */
static int max_segments(const eb_transfer *transfer) {
  return eb_tags_max_segments(&eb_domain.tags) - (int)(transfer->total_bytes / EB_SEGMENT_MAX_BYTES);
}

/* The medians of what was recorded; a partition that was passed over is as early as the one before it. */
static double *typical_ready_s(const eb_adaptation *own) {
  const int num_partitions = own->transfer->num_partitions;
  const int num = own->start < (uint64_t)own->num_ready ? 1 : own->num_ready;
  double *const typical_s = malloc((size_t)num_partitions * sizeof *typical_s);
  for (int p = 0; typical_s && p < num_partitions; p++) {
    const size_t noted = (size_t)(p - p % own->stride);
    double values_s[EB_POLICY_NUM_READY];
    for (int k = 0; k < num; k++)
      values_s[k] = own->ready_s[noted * EB_POLICY_NUM_READY + (own->start - (uint64_t)k) % EB_POLICY_NUM_READY];
    typical_s[p] = eb_planner_typical_s(values_s, num);
  }
  return typical_s;
}

/* The segments in use as a cut; of more than a cut can have, none. */
static void read_cut(const eb_adaptation *own, eb_cut *cut) {
  const eb_segments *const segments = eb_wire_segments(own->wire);
  /* A path that the configuration asks for is none of the policy's: it knows messages only. */
  *cut = (eb_cut){0, eb_world.config.node_path == EB_NODE_AUTO ? segments->path : EB_PATH_MESSAGE, {0}};
  if (segments->num > EB_CUT_MAX_SEGMENTS) return;
  cut->num = segments->num;
  memcpy(cut->end_byte, segments->first_byte + 1, (size_t)cut->num * sizeof *cut->end_byte);
}

void eb_adaptation_propose(eb_adaptation *own) {
  const eb_transfer *const transfer = own->transfer;
  const int most = max_segments(transfer);
  double *const ready_s = typical_ready_s(own);
  own->proposes = false;
  drop_ready(own); /* until the next starts that are observed */
  if (ready_s && most > 1) {
    const eb_cost *const ring_cost = eb_wire_has_room(own->wire, EB_PATH_RING) ? cost_of(own, EB_PATH_RING) : NULL;
    const eb_cost *const direct_cost = eb_wire_has_room(own->wire, EB_PATH_DIRECT) ? cost_of(own, EB_PATH_DIRECT) : NULL;
    const eb_planner_input input = {transfer->cost, ring_cost, direct_cost, transfer->num_partitions, transfer->partition_bytes,
                                    ready_s};
    eb_cut in_use;
    read_cut(own, &in_use);
    /* Other requests now have about as many messages as this one. */
    const double others_s = times_of(own, own->start)->others_s / eb_wire_segments(own->wire)->num;
    const double further_s = others_s + 2 * eb_wire_measure_pack_s(own->wire); /* and the receiver unpacks */
    const int num_together = atomic_load_explicit(&times_of(own, own->start)->num_together, memory_order_relaxed);
    const eb_kind_query query = {transfer, &input, most, further_s, num_together, &in_use, own->start};
    eb_kind *const before = own->kind;
    own->kind = eb_kind_join(&query, before, own);
    if (own->kind != before) own->reported = own->start;
  }
  free(ready_s);
}

/* Tells the policy what the starts of a trial took, as far as feedback has arrived; that on the last start may be on its way. */
static void report(eb_adaptation *own, eb_policy *policy) {
  eb_record *const record = own->record;
  for (uint64_t start = own->start <= NUM_RECORDS ? 1 : own->start - NUM_RECORDS; record && start + 1 < own->start; start++) {
    eb_expected_feedback **const expected = &record->feedback[start % NUM_RECORDS];
    eb_feedback feedback;
    if (!*expected || !eb_feedback_take(expected, &feedback) || feedback.start != start) continue;
    const start_times *const times = times_of(own, start);
    const eb_observation observed = {feedback.done_s - times->done_s, times->all_s, times->own_s};
    eb_policy_observe(policy, own, start, &observed);
  }
}

/* What the sender's own mode wants: the ends of its equal segments, from an info key. */
static int cut_equally(const eb_transfer *transfer, int64_t *end_byte) {
  int64_t step = eb_mode_step_bytes(transfer->mode, transfer->num_partitions, transfer->partition_bytes);
  int num = 0;
  while ((transfer->total_bytes + step - 1) / step > max_segments(transfer)) step += transfer->partition_bytes;
  for (int64_t end = step; end < transfer->total_bytes; end += step) end_byte[num++] = end;
  end_byte[num++] = transfer->total_bytes;
  return num;
}

/* Asks the policy, and writes what it decides: the cuts may be replaced as soon as the lock is released. */
static void ask_policy(eb_adaptation *own, int64_t *message) {
  eb_plan plan;
  eb_cut in_use;
  read_cut(own, &in_use);
  const double age_s = own->record ? eb_now_s() - own->record->began_s : 0;
  eb_lock();
  eb_policy *const policy = eb_kind_policy(own->kind);
  report(own, policy);
  const bool is_current = eb_cut_equal(&in_use, eb_policy_cut(policy));
  eb_policy_decide(policy, own, own->start, own->start - own->reported, is_current, age_s, &plan);
  message[EB_MESSAGE_NUM] = eb_message_write_ends(message + EB_MESSAGE_ENDS, plan.cut);
  message[EB_MESSAGE_NUM_TRIED] = eb_message_write_ends(message + EB_MESSAGE_ENDS + plan.cut->num, plan.trial);
  message[EB_MESSAGE_PATH] = plan.cut->path;
  message[EB_MESSAGE_TRIED_PATH] = plan.trial ? plan.trial->path : EB_PATH_MESSAGE;
  eb_unlock();
  own->reported = own->start;
  own->is_check = plan.is_check;
  message[EB_MESSAGE_NEXT_DUE] = (int64_t)plan.next_due;
  message[EB_MESSAGE_FEEDBACK_FROM] = (int64_t)plan.feedback_from;
  message[EB_MESSAGE_FEEDBACK_END] = (int64_t)plan.feedback_end;
  message[EB_MESSAGE_TRIAL_FROM] = (int64_t)plan.trial_from;
  message[EB_MESSAGE_TRIAL_END] = (int64_t)plan.trial_end;
}

/* Fills in a message. One that has those of the sender's own mode, or the only sensible ones, is the last one; without a kind the
 * segments stay until the next check. */
static void decide(eb_adaptation *own, int64_t *message) {
  const eb_transfer *const transfer = own->transfer;
  const eb_segments *const segments = eb_wire_segments(own->wire);
  memset(message, 0, EB_MESSAGE_ENDS * sizeof *message);
  message[EB_MESSAGE_TOTAL] = transfer->total_bytes;
  message[EB_MESSAGE_START] = (int64_t)own->start;
  message[EB_MESSAGE_LANES] = transfer->spread.num_lanes;
  message[EB_MESSAGE_BLOCK_BYTES] = transfer->spread.block_bytes;
  message[EB_MESSAGE_NEXT_DUE] = (int64_t)NEVER;
  message[EB_MESSAGE_PATH] = segments->path;
  if (own->kind) {
    ask_policy(own, message);
  } else if (max_segments(transfer) > 1 && transfer->mode.kind != EB_AUTO) {
    message[EB_MESSAGE_NUM] = cut_equally(transfer, message + EB_MESSAGE_ENDS);
  } else if (max_segments(transfer) > 1 && !own->adapts && transfer->num_partitions == 1) { /* nothing can be better */
    message[EB_MESSAGE_NUM] = 1;
    message[EB_MESSAGE_ENDS] = transfer->total_bytes;
  } else {
    own->is_check = own->adapts && max_segments(transfer) > 1;
    if (own->is_check) message[EB_MESSAGE_NEXT_DUE] = (int64_t)eb_policy_next_check(own->start, is_small(transfer));
    message[EB_MESSAGE_NUM] = segments->num;
    memcpy(message + EB_MESSAGE_ENDS, segments->first_byte + 1, (size_t)segments->num * sizeof *message);
  }
}

/* Memory for the segments that a message names, by a path; false if there is none. */
static bool reserve(eb_adaptation *own, int64_t *message, int path) {
  return eb_wire_reserve(own->wire, (eb_path)path, eb_message_most_segments(message), eb_message_offset(message, path));
}

/* The sender cannot use the path that is asked for. */
static void note_refused(eb_adaptation *own, int num_segments) {
  const unsigned bit = 1U << eb_asked_path();
  if (!(own->paths_without_memory & bit)) eb_asked_path_refused(own->transfer, eb_wire_is_framed(own->wire), num_segments);
  own->paths_without_memory |= bit;
}

/* The same, because it never names one. */
static void note_without_message(eb_adaptation *own) {
  if (eb_asked_path() != EB_PATH_MESSAGE && own->transfer->is_send && (eb_wire_is_framed(own->wire) || !exchanges(own->transfer)))
    note_refused(own, eb_wire_segments(own->wire)->num);
}

/* For a channel that cannot have what its kind uses: leaves the kind, and fills in what that would use without. */
static void decide_without_memory(eb_adaptation *own, int64_t *message) {
  eb_cut cut = {0};
  if (own->kind) {
    eb_lock();
    const eb_cut *const known = eb_policy_message_cut(eb_kind_policy(own->kind));
    if (known) cut = *known;
    eb_unlock();
  }
  eb_kind_leave(own->kind, own);
  own->kind = NULL;
  decide(own, message); /* what is in use stays, and has its memory */
  if (cut.num > 0 && message[EB_MESSAGE_PATH] == EB_PATH_MESSAGE)
    message[EB_MESSAGE_NUM] = eb_message_write_ends(message + EB_MESSAGE_ENDS, &cut);
}

/* Fills in where the memory is, if the message names some. */
static void provide_memory(eb_adaptation *own, int64_t *message) {
  const eb_path asked = eb_asked_path();
  if (asked != EB_PATH_MESSAGE) {
    if (reserve(own, message, asked)) message[EB_MESSAGE_PATH] = message[EB_MESSAGE_TRIED_PATH] = asked;
    else note_refused(own, eb_message_most_segments(message));
  }
  for (int path = EB_PATH_RING; path < EB_NUM_PATHS; path++) {
    if (!eb_message_names(message, path) || reserve(own, message, path)) continue;
    /* Others of the kind may have what this channel cannot have. */
    own->paths_without_memory |= 1U << path;
    decide_without_memory(own, message);
    const int used = (int)message[EB_MESSAGE_PATH];
    if (used != EB_PATH_MESSAGE) (void)reserve(own, message, used);
    return;
  }
}

/* ---- The message ---- */

/* Keeps of a message what is needed when its starts begin: nothing, if the segments stay. */
static void shrink_message(eb_adaptation *own) {
  const eb_segments *const segments = eb_wire_segments(own->wire);
  const int64_t num = own->message[EB_MESSAGE_NUM], num_tried = own->message[EB_MESSAGE_NUM_TRIED];
  const size_t num_ends = (size_t)num * sizeof *own->message;
  const eb_spread spread = eb_message_spread(own->message);
  if (num_tried == 0 && num == segments->num && own->message[EB_MESSAGE_PATH] == (int64_t)segments->path &&
      eb_spread_equal(&spread, &segments->spread) &&
      memcmp(own->message + EB_MESSAGE_ENDS, segments->first_byte + 1, num_ends) == 0) {
    drop_message(own);
    return;
  }
  int64_t *const smaller = realloc(own->message, ((size_t)(EB_MESSAGE_ENDS + num + num_tried)) * sizeof *own->message);
  if (smaller) own->message = smaller;
}

/* Memory that the message does not name is given up, here if this start is not in it, or else before the next one. */
static int use_memory(eb_adaptation *own) {
  int rc = MPI_SUCCESS;
  for (int path = EB_PATH_RING; path < EB_NUM_PATHS; path++) {
    const bool is_named = eb_message_names(own->message, path);
    if (!is_named && (int)eb_wire_segments(own->wire)->path != path) eb_wire_leave_memory(own->wire, (eb_path)path);
    if (!is_named || own->transfer->is_send) continue;
    const int code = eb_wire_join(own->wire, (eb_path)path, *eb_message_offset(own->message, path));
    if (rc == MPI_SUCCESS) rc = code;
  }
  return rc;
}

/* Takes over the numbers of a message. */
static int apply(eb_adaptation *own) {
  const int64_t *const message = own->message;
  if (message[EB_MESSAGE_TOTAL] != own->transfer->total_bytes) return MPI_ERR_TRUNCATE;
  if (!eb_message_is_valid(message, own->transfer->total_bytes, eb_tags_max_segments(&eb_domain.tags))) return MPI_ERR_INTERN;
  own->next_due = (uint64_t)message[EB_MESSAGE_NEXT_DUE];
  own->feedback_from = (uint64_t)message[EB_MESSAGE_FEEDBACK_FROM];
  own->feedback_end = (uint64_t)message[EB_MESSAGE_FEEDBACK_END];
  return use_memory(own);
}

static int exchange_message(eb_adaptation *own) {
  const int peer = own->transfer->wire_peer, tag = eb_wire_segmentation_tag(own->wire);
  const size_t most = EB_MESSAGE_ENDS + (size_t)eb_tags_max_segments(&eb_domain.tags) + EB_CUT_MAX_SEGMENTS;
  const size_t max_bytes = most * sizeof *own->message;
  if (!own->message && !(own->message = malloc(max_bytes))) return MPI_ERR_NO_MEM;
  own->message[EB_MESSAGE_START] = 0; /* nothing has come */
  if (!own->transfer->is_send)
    return PMPI_Irecv(own->message, (int)max_bytes, MPI_BYTE, peer, tag, eb_domain.comm, eb_wire_segmentation_request(own->wire));
  decide(own, own->message);
  provide_memory(own, own->message);
  int rc = apply(own);
  if (rc != MPI_SUCCESS) return rc;
  if (own->feedback_end <= own->start) drop_record(own);
  const int64_t num = own->message[EB_MESSAGE_NUM] + own->message[EB_MESSAGE_NUM_TRIED];
  const size_t num_bytes = (EB_MESSAGE_ENDS + (size_t)num) * sizeof *own->message;
  rc = eb_send_queue_send(EB_SEND_CONTROL, own->message, num_bytes, peer, tag, eb_domain.comm);
  shrink_message(own);
  return rc;
}

int eb_adaptation_start(eb_adaptation *own, uint64_t start) {
  own->start = start;
  if (eb_wire_is_framed(own->wire)) own->next_due = NEVER; /* the messages of an adaptation have tags */
  note_without_message(own);
  const int rc = is_due(own) ? exchange_message(own) : MPI_SUCCESS;
  return rc == MPI_SUCCESS ? observe_start(own) : rc;
}

int eb_adaptation_finish(eb_adaptation *own) {
  const int rc = is_due(own) ? apply(own) : MPI_SUCCESS;
  if (rc == MPI_SUCCESS && own->message && (uint64_t)own->message[EB_MESSAGE_START] == own->start) shrink_message(own);
  if (rc != MPI_SUCCESS || !has_feedback(own)) return rc;
  const eb_feedback feedback = {.start = own->start, .done_s = own->arrived_s};
  return eb_feedback_send(own->transfer->wire_peer, eb_wire_feedback_tag(own->wire), &feedback);
}

bool eb_adaptation_abandon(eb_adaptation *own) {
  MPI_Request *const request = eb_wire_segmentation_request(own->wire);
  if (own->transfer->is_send || !is_due(own) || !own->message) return false;
  const bool has_come = *request == MPI_REQUEST_NULL;
  if (has_come && (uint64_t)own->message[EB_MESSAGE_START] != own->start) return false;
  unsigned paths_joined = 0;
  for (int path = EB_PATH_RING; path < EB_NUM_PATHS; path++)
    if (eb_wire_has_memory(own->wire, (eb_path)path)) paths_joined |= 1U << path;
  if (!eb_unread_keep(own->transfer, paths_joined, own->message, *request)) return false;
  own->message = NULL;
  *request = MPI_REQUEST_NULL;
  return !has_come;
}
