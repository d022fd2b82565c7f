/* Observes a channel's starts, searches the segments that take least, and agrees on them with the other side. */
#include "partitioned/adaptation/adaptation.h"

#include <stdlib.h>
#include <string.h>

#include "partitioned/adaptation/learned.h"
#include "partitioned/adaptation/schedule.h"
#include "partitioned/domain/domain.h"
#include "partitioned/domain/send_queue.h"
#include "partitioned/process/clock.h"
#include "partitioned/process/send_time.h"
#include "partitioned/segmentation/search.h"
#include "partitioned/wire/tracking.h"

#define NEVER UINT64_MAX
/* The program has changed if another segmentation now promises this much more than when the current one was found. */
#define CHANGED 0.85

/* The layout of a segmentation message: the number of ends, the total, the start of the next message, the ends. */
enum { MESSAGE_NUM, MESSAGE_TOTAL, MESSAGE_NEXT_DUE, MESSAGE_ENDS };

struct eb_trial {
  eb_search *search;  /* proposed or in progress; otherwise NULL, because a program may have thousands of requests */
  bool is_searching;
  bool is_doubted;     /* the last search chose several segments; another must, too */
  bool is_recalled, has_changed; /* what goes with a proposal */
  eb_learned in_use;   /* what the last search found, or was learned before; `seen` is that of the last proposal */
  double began_s;     /* the search */
  eb_send_time before[EB_SEND_TIME_PLACES]; /* what threads had spent in sends when the start began */
};

/* Both sides compute the same result; a transfer of more segments than a message can hold keeps the canonical ones. */
static bool exchanges(const eb_transfer *transfer) {
  return eb_world.config.mode.kind == EB_AUTO && !eb_transfer_is_null(transfer) && transfer->total_bytes > 0 &&
         transfer->total_bytes / EB_SEGMENT_MAX_BYTES < eb_tags_max_segments(&eb_domain.tags);
}

static bool is_small(const eb_transfer *transfer) {
  return transfer->total_bytes < eb_transfer_agreement(transfer)->least_adapted_bytes;
}

/* Between nodes a message takes cores some microseconds, which other requests wait for: the time of its own request does not show
 * it. From this size on its bytes take longer than that at 10 Gbit/s, and more messages may be worth it. */
#define MAX_STRICT_BYTES (INT64_C(16) * 1024)

static bool is_strict(const eb_transfer *transfer) {
  return transfer->total_bytes <= MAX_STRICT_BYTES && eb_transfer_is_inter_node(transfer);
}

/* Between nodes the bytes of larger transfers take much longer than messages cost: it is well predicted that several segments gain
 * if partitions become ready one after another, though not how many segments gain most. Where ranks share cores, times vary from
 * start to start by more than this gain: of 8 requests of 48 KiB in four partitions between four nodes on two cores, four kept one
 * message, though one per partition made the step 10 % shorter. Costs of larger transfers are extrapolated. */
static bool trusts_predictions(const eb_transfer *transfer) {
  return eb_transfer_is_inter_node(transfer) && !is_strict(transfer) && eb_planner_is_short(transfer->total_bytes);
}

/* Must two searches agree on several segments? A program may have many short transfers, all of which search at the same time, on
 * cores that they share: with 8 requests of 3 KiB each between four nodes on two cores, single searches chose two segments for
 * three of them, whose messages cost every other request time. */
static bool is_to_be_confirmed(const eb_transfer *transfer) {
  return eb_transfer_is_inter_node(transfer) ? is_strict(transfer) : eb_planner_is_short(transfer->total_bytes);
}

static uint64_t first_due(const eb_transfer *transfer) { return eb_schedule_first(is_small(transfer)); }

static bool is_due(const eb_adaptation *own) { return own->start == own->next_due; }

/* Those of a search, and those before a message. */
static bool is_to_be_observed(const eb_adaptation *own) {
  return own->next_due != NEVER && own->start + EB_SCHEDULE_NUM_OBSERVED >= own->next_due &&
         (own->trial || !own->transfer->is_send);
}

/* Does the receiver send feedback? On the starts of a search, in which the next start has a message, too. Asked once the message
 * of this start is known; every start with feedback is observed. */
static bool has_feedback(const eb_adaptation *own) {
  return own->start > first_due(own->transfer) && own->next_due == own->start + 1;
}

int eb_adaptation_begin(eb_adaptation *own, const eb_transfer *transfer, eb_wire *wire) {
  own->transfer = transfer;
  own->wire = wire;
  own->next_due = exchanges(transfer) ? first_due(transfer) : NEVER;
  if (!transfer->is_send || transfer->mode.kind != EB_AUTO || own->next_due == NEVER) return MPI_SUCCESS;
  if (transfer->num_partitions == 1 && !eb_planner_can_gain(transfer->cost, transfer->total_bytes, transfer->partition_bytes))
    return MPI_SUCCESS;
  /* The times of more partitions than that would take more memory than their data. */
  if (transfer->num_partitions > EB_MAX_PARTITION_STATES) return MPI_SUCCESS;
  own->trial = calloc(1, sizeof *own->trial);
  return own->trial ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

static void set_counted(eb_adaptation *own, bool is_counted) {
  if (own->is_counted != is_counted) eb_send_time_observe(is_counted ? 1 : -1);
  own->is_counted = is_counted;
}

void eb_adaptation_end(eb_adaptation *own) {
  eb_feedback ignored;
  for (int r = 0; r < EB_NUM_RECORDS; r++) (void)eb_feedback_take(&own->feedback[r], &ignored);
  set_counted(own, false);
  eb_segments_free(&own->next_segments);
  free(own->ready_s);
  if (own->trial) free(own->trial->search);
  free(own->trial);
  free(own->message);
}

bool eb_adaptation_take_segments(eb_adaptation *own, eb_segments *segments) {
  if (own->next_segments.num == 0) return false;
  *segments = own->next_segments;
  own->next_segments = (eb_segments){0, NULL};
  return true;
}

/* ---- The times of a start ---- */

static int select_record(eb_adaptation *own) {
  own->record = (int)(own->start % EB_NUM_RECORDS);
  own->is_observed = is_to_be_observed(own);
  if (!own->trial) return MPI_SUCCESS;
  set_counted(own, own->is_observed);
  const bool is_searching = own->trial->is_searching;
  if (own->is_observed && !is_searching && !own->ready_s) /* without it nothing is proposed */
    own->ready_s = calloc((size_t)own->transfer->num_partitions, EB_NUM_RECORDS * sizeof *own->ready_s);
  own->proposes = own->ready_s && !is_searching && own->start + 1 == own->next_due;
  if (!has_feedback(own)) return MPI_SUCCESS;
  eb_expected_feedback **const expected = &own->feedback[own->record];
  eb_feedback unread;
  (void)eb_feedback_take(expected, &unread);
  return eb_feedback_expect(own->transfer->wire_peer, eb_wire_feedback_tag(own->wire), expected);
}

void eb_adaptation_set_started(eb_adaptation *own) {
  atomic_store_explicit(&own->own_s, 0, memory_order_relaxed);
  if (!own->is_observed) return;
  eb_send_time_read(own->trial->before);
  own->started_s = eb_stopwatch_s();
  own->clock_ahead_s = eb_now_s() - own->started_s;
}

void eb_adaptation_note_ready(eb_adaptation *own, int partition) {
  const double now_s = eb_stopwatch_s();
  const double own_s = atomic_load_explicit(&own->own_s, memory_order_relaxed);
  const double spent_s = now_s - own->started_s;
  const eb_send_time since = eb_send_time_since(own->trial->before);
  /* A send that began before the start is counted as a whole. */
  const double sends_s = since.sends_s < spent_s ? since.sends_s : spent_s;
  const double others_s = sends_s > own_s ? sends_s - own_s : 0;
  const double ready_s = spent_s - sends_s - since.readings_s;
  eb_time_spent *const spent = &own->spent[own->record];
  /* Of the last one, whichever thread that is. */
  atomic_store_explicit(&own->done_s[own->record], own->clock_ahead_s + now_s, memory_order_relaxed);
  atomic_store_explicit(&spent->all_s, spent_s - others_s, memory_order_relaxed);
  atomic_store_explicit(&spent->own_s, own_s, memory_order_relaxed);
  atomic_store_explicit(&spent->others_s, others_s, memory_order_relaxed);
  if (own->ready_s) own->ready_s[(size_t)partition * EB_NUM_RECORDS + (size_t)own->record] = (float)(ready_s > 0 ? ready_s : 0);
  eb_send_time_add_reading(eb_clock.read_s);
}

void eb_adaptation_note_sent(eb_adaptation *own, double spent_s) {
  const double own_s = atomic_load_explicit(&own->own_s, memory_order_relaxed) + spent_s;
  atomic_store_explicit(&own->own_s, own_s, memory_order_relaxed);
}

void eb_adaptation_set_finished(eb_adaptation *own) { set_counted(own, false); }

void eb_adaptation_note_arrived(eb_adaptation *own) { own->done_s[own->record] = eb_now_s(); }

/* Passes the time of a start to the search if the receiver's feedback on it has arrived. */
static void observe(eb_adaptation *own, uint64_t start) {
  const int place = (int)(start % EB_NUM_RECORDS);
  eb_feedback feedback;
  if (!eb_feedback_take(&own->feedback[place], &feedback) || feedback.start != start) return;
  const eb_observation observed = {feedback.done_s - own->done_s[place], own->spent[place].all_s, own->spent[place].own_s};
  eb_search_observe(own->trial->search, start, &observed);
}

/* ---- What the sender proposes ---- */

/* The most segments that a message may name, so that with the cuts at EB_SEGMENT_MAX_BYTES they still fit the tags. */
static int max_segments(const eb_transfer *transfer) {
  return eb_tags_max_segments(&eb_domain.tags) - (int)(transfer->total_bytes / EB_SEGMENT_MAX_BYTES);
}

/* The medians of what was recorded of the last three starts, or of the first one. */
static double *typical_ready_s(const eb_adaptation *own) {
  const int num_partitions = own->transfer->num_partitions, num = own->start < 3 ? 1 : 3;
  double *const typical_s = malloc((size_t)num_partitions * sizeof *typical_s);
  for (int p = 0; typical_s && p < num_partitions; p++) {
    double values_s[3];
    for (int k = 0; k < num; k++)
      values_s[k] = own->ready_s[(size_t)p * EB_NUM_RECORDS + (own->start - (uint64_t)k) % EB_NUM_RECORDS];
    typical_s[p] = eb_planner_typical_s(values_s, num);
  }
  return typical_s;
}

void eb_adaptation_propose(eb_adaptation *own) {
  const eb_transfer *const transfer = own->transfer;
  eb_trial *const trial = own->trial;
  const int most = max_segments(transfer);
  own->proposes = false;
  double *const ready_s = typical_ready_s(own);
  free(own->ready_s); /* until the next starts that are observed */
  own->ready_s = NULL;
  trial->search = ready_s && most > 1 ? malloc(sizeof *trial->search) : NULL;
  if (!trial->search) { /* the segments stay as they are */
    free(ready_s);
    return;
  }
  const eb_planner_input input = {transfer->cost, transfer->num_partitions, transfer->partition_bytes, ready_s};
  eb_proposal proposals[EB_PLANNER_MAX_CUTS];
  /* Other requests now have about as many messages as this one. */
  const double others_s = own->spent[own->record].others_s / eb_wire_segments(own->wire)->num;
  const double further_s = others_s + 2 * eb_wire_measure_pack_s(own->wire); /* and the receiver unpacks */
  const bool is_early = eb_planner_send_early(&input, most, further_s, proposals);
  const int num = is_early ? 1 : eb_planner_select(&input, eb_planner_propose(&input, most, proposals), proposals);
  eb_search_begin(trial->search, num, proposals);
  trial->search->is_strict = is_strict(transfer);
  trial->search->trusts_predictions = trusts_predictions(transfer);
  trial->search->further_s = eb_cost_core_s(transfer->cost, transfer->partition_bytes);
  const bool is_first = own->start < first_due(transfer);
  if (trial->in_use.cut.num == 0) trial->in_use.cut.num = eb_wire_segments(own->wire)->num;
  const eb_learned *const in_use = &trial->in_use;
  trial->has_changed = is_early ? proposals[0].cut.num != in_use->cut.num
                                : proposals[0].predicted_s < CHANGED * in_use->promise * eb_planner_price_s(&input, &in_use->cut);
  trial->has_changed = trial->has_changed && !is_first;
  trial->in_use.seen = eb_readiness_of(ready_s, transfer->num_partitions);
  trial->is_recalled = is_first && eb_learned_recall(transfer, &trial->in_use);
  free(ready_s);
}

/* ---- What the sender decides ---- */

/* What the sender's own mode wants: the ends of its equal segments, from an info key. */
static int cut_equally(const eb_transfer *transfer, int64_t *end_byte) {
  int64_t step = eb_mode_step_bytes(transfer->mode, transfer->num_partitions, transfer->partition_bytes);
  int num = 0;
  while ((transfer->total_bytes + step - 1) / step > max_segments(transfer)) step += transfer->partition_bytes;
  for (int64_t end = step; end < transfer->total_bytes; end += step) end_byte[num++] = end;
  end_byte[num++] = transfer->total_bytes;
  return num;
}

/* Are times of the beginning of the search still comparable with those of now? */
static bool is_comparable_yet(const eb_adaptation *own) {
  const eb_trial *const trial = own->trial;
  return !eb_transfer_is_inter_node(own->transfer) || eb_search_is_comparable(trial->search, eb_now_s() - trial->began_s);
}

/* The segmentation of the next start: a candidate during a search, otherwise its result. */
static const eb_cut *continue_search(eb_adaptation *own) {
  eb_trial *const trial = own->trial;
  eb_search *const search = trial->search;
  if (own->start > first_due(own->transfer) + 2) observe(own, own->start - 2);
  if (search->num_tries == 0) trial->began_s = eb_now_s();
  const bool is_comparable = is_comparable_yet(own);
  const eb_cut *const next = is_comparable ? eb_search_next(search, own->start + 1) : NULL;
  if (next) return next;
  eb_confirmation confirmation = {is_to_be_confirmed(own->transfer), trial->in_use.cut.num, trial->is_doubted};
  const eb_proposal *const best = eb_search_end(search, is_comparable, &confirmation);
  trial->is_doubted = confirmation.is_doubted;
  trial->in_use.cut = best->cut;
  trial->in_use.promise = best->predicted_s > 0 ? search->candidates[0].proposal.predicted_s / best->predicted_s : 1;
  trial->is_searching = false;
  if (is_comparable && !trial->is_doubted) eb_learned_keep(own->transfer, &trial->in_use);
  return &trial->in_use.cut;
}

static eb_schedule_state state_of(const eb_trial *trial, bool is_borrowed) {
  if (trial->is_searching) return EB_SCHEDULE_SEARCHING;
  if (is_borrowed) return EB_SCHEDULE_BORROWED;
  return trial->is_doubted ? EB_SCHEDULE_DOUBTED : EB_SCHEDULE_ENDED;
}

/* The ends of the next segments, or 0 to keep those in use; and when the next message is due. */
static int decide(eb_adaptation *own, int64_t *end_byte, uint64_t *next_due) {
  const eb_transfer *const transfer = own->transfer;
  eb_trial *const trial = own->trial;
  *next_due = NEVER;
  if (max_segments(transfer) < 2) return 0;
  if (transfer->mode.kind != EB_AUTO) return cut_equally(transfer, end_byte);
  if (!trial && transfer->num_partitions > 1) return 0;
  if (!trial) { /* no segmentation can be better */
    end_byte[0] = transfer->total_bytes;
    return 1;
  }
  const eb_cut *cut = NULL;
  const bool is_borrowed = own->start == first_due(transfer) && trial->is_recalled;
  if (trial->search && is_borrowed) cut = &trial->in_use.cut;
  else if (trial->search && (eb_schedule_begins_search(own->start) || trial->has_changed || trial->is_doubted))
    trial->is_searching = true;
  if (trial->is_searching) cut = continue_search(own);
  if (!trial->is_searching) {
    free(trial->search);
    trial->search = NULL;
  }
  *next_due = eb_schedule_next(own->start, is_small(transfer), state_of(trial, is_borrowed));
  if (!cut) return 0;
  memcpy(end_byte, cut->end_byte, (size_t)cut->num * sizeof *end_byte);
  return cut->num;
}

/* ---- The message ---- */

/* Turns a message's ends into the segments of the next start, if they differ from those in use. */
static int set_next(eb_adaptation *own) {
  if (own->message[MESSAGE_TOTAL] != own->transfer->total_bytes) return MPI_ERR_TRUNCATE;
  eb_segments made;
  if (eb_segments_from_ends((int)own->message[MESSAGE_NUM], own->message + MESSAGE_ENDS, &made) != 0) return MPI_ERR_NO_MEM;
  own->next_due = (uint64_t)own->message[MESSAGE_NEXT_DUE];
  if (eb_segments_equal(&made, eb_wire_segments(own->wire))) eb_segments_free(&made);
  else own->next_segments = made;
  return MPI_SUCCESS;
}

static int write_message(eb_adaptation *own) {
  const eb_segments *const segments = eb_wire_segments(own->wire);
  int64_t *const message = own->message;
  uint64_t next_due;
  int num = decide(own, message + MESSAGE_ENDS, &next_due);
  if (num == 0) {
    num = segments->num;
    memcpy(message + MESSAGE_ENDS, segments->first_byte + 1, (size_t)num * sizeof *message);
  }
  message[MESSAGE_NUM] = num;
  message[MESSAGE_TOTAL] = own->transfer->total_bytes;
  message[MESSAGE_NEXT_DUE] = (int64_t)next_due;
  return set_next(own);
}

/* Messages are rare, and there may be thousands of requests. */
static void drop_message(eb_adaptation *own) {
  free(own->message);
  own->message = NULL;
}

static int exchange_message(eb_adaptation *own) {
  const int peer = own->transfer->wire_peer, tag = eb_wire_segmentation_tag(own->wire);
  const size_t max_bytes = (MESSAGE_ENDS + (size_t)eb_tags_max_segments(&eb_domain.tags)) * sizeof *own->message;
  if (!own->message && !(own->message = malloc(max_bytes))) return MPI_ERR_NO_MEM;
  if (!own->transfer->is_send)
    return PMPI_Irecv(own->message, (int)max_bytes, MPI_BYTE, peer, tag, eb_domain.comm, eb_wire_segmentation_request(own->wire));
  const int rc = write_message(own);
  if (rc != MPI_SUCCESS) return rc;
  const size_t num_bytes = (MESSAGE_ENDS + (size_t)own->message[MESSAGE_NUM]) * sizeof *own->message;
  const int sent = eb_send_queue_send(EB_SEND_CONTROL, own->message, num_bytes, peer, tag, eb_domain.comm);
  drop_message(own);
  return sent;
}

int eb_adaptation_start(eb_adaptation *own, uint64_t start) {
  own->start = start;
  if (eb_wire_is_framed(own->wire)) own->next_due = NEVER; /* the messages of an adaptation have tags */
  const int rc = is_due(own) ? exchange_message(own) : MPI_SUCCESS;
  return rc == MPI_SUCCESS ? select_record(own) : rc;
}

int eb_adaptation_finish(eb_adaptation *own) {
  int rc = MPI_SUCCESS;
  if (is_due(own)) {
    rc = set_next(own);
    drop_message(own);
  }
  if (rc != MPI_SUCCESS || !has_feedback(own)) return rc;
  const eb_feedback feedback = {.start = own->start, .done_s = own->done_s[own->record]};
  return eb_feedback_send(own->transfer->wire_peer, eb_wire_feedback_tag(own->wire), &feedback);
}
