/* Observes a channel's starts, searches the segments that take least, and agrees on them with the other side. */
#include "partitioned/adaptation/adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/domain/send_queue.h"
#include "partitioned/segmentation/search.h"
#include "partitioned/process/world.h"

/* The sender decides when it sends plans, and each plan contains the start of the next one: every start during a search,
 * seldom afterwards. Both sides know the start of the first plan. */
enum { FIRST_DUE = 2, CHECK_DUE = 32, RETRY_DUE = 128, DUE_STEP = 256 };
#define NEVER UINT64_MAX
/* Starts before a plan whose times are taken: the feedback of a start is there two starts later. */
enum { NUM_OBSERVED = 4 };
/* The program has changed if another segmentation now promises this much more than when the current one was found. */
#define CHANGED 0.85
/* Clocks of two nodes drift apart by some microseconds a second: what is older cannot be compared any more. */
#define COMPARABLE_S 0.1

/* When partitions are ready, in two numbers: how long before the last one the first, and half of them. */
typedef struct {
  double first_s, half_s;
} readiness;

/* A search is not repeated if the ready times differ by at most these fractions of themselves and of one message's time. */
#define ALIKE 0.25
#define ALIKE_MESSAGE 0.1

/* The result of a search outlives its request: some programs create new requests for each transfer. */
enum { NUM_LEARNED = 64 };
static struct {
  int peer, num_partitions;
  int64_t total_bytes; /* 0: an empty place */
  eb_cut cut;
  double promise;
  readiness seen;
} learned[NUM_LEARNED];
static unsigned num_learned; /* ever; places are taken in turn */

struct eb_adaptation {
  eb_search *search;  /* proposed or in progress; otherwise NULL, because a program may have thousands of requests */
  bool is_searching;
  bool is_recalled, has_changed; /* what goes with a proposal */
  eb_cut in_use;      /* what the last search found, or was learned before */
  readiness seen;     /* when it was proposed */
  double promise;     /* the predicted time of the best over that of the one in use, when it was found */
  double began_s;     /* the search */
};

/* Both sides compute the same result; a transfer of more segments than a plan can hold keeps the canonical ones. */
static bool exchanges(const eb_channel *channel) {
  return eb_world.config.mode.kind == EB_AUTO && channel->peer != MPI_PROC_NULL &&
         channel->total_bytes >= eb_channel_agreement(channel)->least_planned_bytes &&
         channel->total_bytes / EB_SEGMENT_MAX_BYTES < eb_tags_max_segments(&eb_domain.tags);
}

static bool is_due(const eb_channel *channel) { return channel->num_starts == channel->next_due; }

/* Are the times of this start taken? Of those of a search, and of those before a plan. */
static bool is_observed(const eb_channel *channel) {
  return channel->next_due != NEVER && channel->num_starts + NUM_OBSERVED >= channel->next_due;
}

/* Does the receiver report it? Those of a search, in which the next start has a plan, too. Asked once the plan of this start is
 * known; every start that is reported is observed. */
static bool is_reported(const eb_channel *channel) {
  return channel->num_starts > FIRST_DUE && channel->next_due == channel->num_starts + 1;
}

static int plan_tag(const eb_channel *channel) {
  return eb_tags_segmentation(&eb_domain.tags, channel->base, channel->num_ids);
}

static int feedback_tag(const eb_channel *channel) {
  return eb_tags_feedback(&eb_domain.tags, channel->base, channel->num_ids);
}

int eb_adapt_begin(eb_channel *channel) {
  channel->next_due = exchanges(channel) ? FIRST_DUE : NEVER;
  if (!channel->is_send || channel->mode.kind != EB_AUTO || channel->next_due == NEVER ||
      !eb_planner_can_gain(channel->cost, channel->total_bytes, channel->partition_bytes))
    return MPI_SUCCESS;
  channel->adaptation = calloc(1, sizeof *channel->adaptation);
  return channel->adaptation ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void eb_adapt_end(eb_channel *channel) {
  eb_feedback ignored;
  for (int r = 0; r < EB_NUM_RECORDS; r++) (void)eb_matching_take_feedback(&channel->feedback[r], &ignored);
  free(channel->ready_s);
  if (channel->adaptation) free(channel->adaptation->search);
  free(channel->adaptation);
  free(channel->plan);
}

int eb_adapt_start(eb_channel *channel) {
  const int place = (int)(channel->num_starts % EB_NUM_RECORDS);
  channel->record = is_observed(channel) && (channel->adaptation || !channel->is_send) ? place : -1;
  if (!channel->adaptation) return MPI_SUCCESS;
  const bool is_searching = channel->adaptation->is_searching;
  if (channel->record >= 0 && !is_searching && !channel->ready_s) /* without it nothing is proposed */
    channel->ready_s = calloc((size_t)channel->num_partitions, EB_NUM_RECORDS * sizeof *channel->ready_s);
  channel->proposes = channel->ready_s && !is_searching && channel->num_starts + 1 == channel->next_due;
  if (!is_reported(channel)) return MPI_SUCCESS;
  eb_feedback unread;
  (void)eb_matching_take_feedback(&channel->feedback[place], &unread);
  return eb_matching_expect_feedback(channel->wire_peer, feedback_tag(channel), &channel->feedback[place]);
}

/* The layout of a plan: the number of ends, the total, the start of the next plan, the ends. */
enum { PLAN_NUM, PLAN_TOTAL, PLAN_NEXT_DUE, PLAN_ENDS };

/* Turns a plan's ends into the segments of the next start, if they differ from today's. */
static int set_next(eb_channel *channel) {
  const int64_t num = channel->plan[PLAN_NUM];
  if (channel->plan[PLAN_TOTAL] != channel->total_bytes) return MPI_ERR_TRUNCATE;
  eb_segments made;
  if (eb_segments_from_ends((int)num, channel->plan + PLAN_ENDS, &made) != 0) return MPI_ERR_NO_MEM;
  channel->next_due = (uint64_t)channel->plan[PLAN_NEXT_DUE];
  if (eb_segments_equal(&made, &channel->segments)) eb_segments_free(&made);
  else channel->next_segments = made;
  return MPI_SUCCESS;
}

int eb_adapt_finish(eb_channel *channel) {
  const int place = channel->record;
  if (is_due(channel)) {
    const int rc = set_next(channel);
    if (rc != MPI_SUCCESS) return rc;
  }
  if (!is_reported(channel)) return MPI_SUCCESS;
  const eb_feedback feedback = {.start = channel->num_starts, .done_s = channel->done_s[place]};
  return eb_send_queue_send(EB_SEND_CONTROL, &feedback, sizeof feedback, channel->wire_peer, feedback_tag(channel), eb_domain.comm);
}

/* Passes the time of a start to the search if the receiver's feedback on it has arrived. */
static void observe(eb_channel *channel, uint64_t start) {
  const int place = (int)(start % EB_NUM_RECORDS);
  eb_feedback feedback;
  if (!eb_matching_take_feedback(&channel->feedback[place], &feedback) || feedback.start != start) return;
  const eb_observation observed = {feedback.done_s - channel->done_s[place], channel->spent_s[place][0], channel->spent_s[place][1]};
  eb_search_observe(channel->adaptation->search, start, &observed);
}

/* The most segments that a plan may name, so that with the cuts at EB_SEGMENT_MAX_BYTES they still fit the tags. */
static int max_planned(const eb_channel *channel) {
  return eb_tags_max_segments(&eb_domain.tags) - (int)(channel->total_bytes / EB_SEGMENT_MAX_BYTES);
}

static bool has_plan(eb_channel *channel) {
  if (!channel->plan)
    channel->plan = malloc((PLAN_ENDS + (size_t)eb_tags_max_segments(&eb_domain.tags)) * sizeof *channel->plan);
  return channel->plan != NULL;
}

/* The medians of what was recorded of the last three starts, or of the first one. */
static double *typical_ready_s(const eb_channel *channel) {
  double *const typical_s = malloc((size_t)channel->num_partitions * sizeof *typical_s);
  const int num = channel->num_starts < 3 ? 1 : 3;
  for (int p = 0; typical_s && p < channel->num_partitions; p++) {
    double values_s[3];
    for (int k = 0; k < num; k++)
      values_s[k] = channel->ready_s[(size_t)p * EB_NUM_RECORDS + (channel->num_starts - (uint64_t)k) % EB_NUM_RECORDS];
    typical_s[p] = eb_planner_typical_s(values_s, num);
  }
  return typical_s;
}

static eb_planner_input input_of(const eb_channel *channel, const double *ready_s) {
  return (eb_planner_input){channel->cost, channel->num_partitions, channel->partition_bytes, ready_s};
}

/* Sorts ready_s. */
static readiness readiness_of(double *ready_s, int num) {
  eb_planner_sort_s(ready_s, num);
  return (readiness){ready_s[num - 1] - ready_s[0], ready_s[num - 1] - ready_s[num / 2]};
}

static bool is_alike(const readiness *a, const readiness *b, double message_s) {
  return fabs(a->first_s - b->first_s) <= ALIKE * fmax(a->first_s, b->first_s) + ALIKE_MESSAGE * message_s &&
         fabs(a->half_s - b->half_s) <= ALIKE * fmax(a->half_s, b->half_s) + ALIKE_MESSAGE * message_s;
}

/* Is what was learned of such a transfer good for this one, too? */
static bool recall(const eb_channel *channel) {
  eb_adaptation *const own = channel->adaptation;
  const double message_s = eb_cost_time_s(channel->cost, channel->total_bytes);
  bool found = false;
  eb_lock();
  for (int k = 0; k < NUM_LEARNED && !found; k++) {
    found = learned[k].total_bytes == channel->total_bytes && learned[k].peer == channel->wire_peer &&
            learned[k].num_partitions == channel->num_partitions && is_alike(&learned[k].seen, &own->seen, message_s);
    if (!found) continue;
    own->in_use = learned[k].cut;
    own->promise = learned[k].promise;
  }
  eb_unlock();
  return found;
}

static void learn(const eb_channel *channel) {
  const double message_s = eb_cost_time_s(channel->cost, channel->total_bytes);
  eb_lock();
  int place = -1;
  for (int k = 0; k < NUM_LEARNED && place < 0; k++)
    if (learned[k].total_bytes == channel->total_bytes && learned[k].peer == channel->wire_peer &&
        learned[k].num_partitions == channel->num_partitions && is_alike(&learned[k].seen, &channel->adaptation->seen, message_s))
      place = k;
  if (place < 0) place = (int)(num_learned++ % NUM_LEARNED);
  learned[place].peer = channel->wire_peer;
  learned[place].num_partitions = channel->num_partitions;
  learned[place].total_bytes = channel->total_bytes;
  learned[place].cut = channel->adaptation->in_use;
  learned[place].promise = channel->adaptation->promise;
  learned[place].seen = channel->adaptation->seen;
  eb_unlock();
}

void eb_adapt_propose(eb_channel *channel) {
  eb_adaptation *const own = channel->adaptation;
  channel->proposes = false;
  double *const ready_s = typical_ready_s(channel);
  free(channel->ready_s); /* until the next starts that are observed */
  channel->ready_s = NULL;
  own->search = ready_s && max_planned(channel) > 1 ? malloc(sizeof *own->search) : NULL;
  if (!own->search) { /* the segments stay as they are */
    free(ready_s);
    return;
  }
  const eb_planner_input input = input_of(channel, ready_s);
  eb_proposal proposals[EB_PLANNER_MAX_CUTS];
  eb_search_begin(own->search, eb_planner_propose(&input, max_planned(channel), proposals), proposals);
  const bool is_first = channel->num_starts < FIRST_DUE;
  own->has_changed = !is_first && proposals[0].predicted_s < CHANGED * own->promise * eb_planner_price_s(&input, &own->in_use);
  own->seen = readiness_of(ready_s, channel->num_partitions);
  own->is_recalled = is_first && recall(channel);
  free(ready_s);
}

/* What the sender's own mode wants: the ends of its equal segments, from an info key. */
static int cut_equally(const eb_channel *channel, int64_t *end_byte) {
  const int64_t step_bytes = eb_mode_step_bytes(channel->mode, channel->num_partitions, channel->partition_bytes);
  int64_t step = step_bytes;
  int num = 0;
  while ((channel->total_bytes + step - 1) / step > max_planned(channel)) step += channel->partition_bytes;
  for (int64_t end = step; end < channel->total_bytes; end += step) end_byte[num++] = end;
  end_byte[num++] = channel->total_bytes;
  return num;
}

/* Is the beginning of the search too long ago for comparisons? */
static bool is_outdated(const eb_channel *channel) {
  return channel->cost == &eb_world.config.inter_node && eb_now_s() - channel->adaptation->began_s > COMPARABLE_S;
}

/* The segmentation of the next start: a candidate during a search, otherwise its result. */
static const eb_cut *go_on(eb_channel *channel) {
  eb_adaptation *const own = channel->adaptation;
  if (channel->num_starts > FIRST_DUE + 2) observe(channel, channel->num_starts - 2);
  eb_search *const search = own->search;
  if (search->num_tries == 0) own->began_s = eb_now_s();
  const bool is_comparable = !is_outdated(channel);
  const eb_cut *const next = is_comparable ? eb_search_next(search, channel->num_starts + 1) : NULL;
  if (next) return next;
  const eb_proposal *const best = is_comparable ? eb_search_best(search) : eb_search_predicted(search);
  own->in_use = best->cut;
  own->promise = best->predicted_s > 0 ? search->candidates[0].proposal.predicted_s / best->predicted_s : 1;
  own->is_searching = false;
  if (is_comparable) learn(channel);
  return &own->in_use;
}

/* When to look again: once when the first messages of a size, which may be slow by themselves, are over (the first 20 to 40
 * of a size take Intel MPI 20 times as long in shared memory), then every so often. */
static uint64_t next_look(uint64_t start) {
  return start < RETRY_DUE ? RETRY_DUE : (start + NUM_OBSERVED) / DUE_STEP * DUE_STEP + DUE_STEP;
}

/* The ends of the next segments, or 0 to keep those in use; and when the next plan is due. */
static int decide(eb_channel *channel, int64_t *end_byte, uint64_t *next_due) {
  eb_adaptation *const own = channel->adaptation;
  *next_due = NEVER;
  if (max_planned(channel) < 2) return 0;
  if (channel->mode.kind != EB_AUTO) return cut_equally(channel, end_byte);
  if (!own) { /* no plan can be better */
    end_byte[0] = channel->total_bytes;
    return 1;
  }
  const eb_cut *cut = NULL;
  if (own->search && channel->num_starts == FIRST_DUE && own->is_recalled) cut = &own->in_use;
  else if (own->search && (channel->num_starts <= CHECK_DUE || channel->num_starts == RETRY_DUE || own->has_changed))
    own->is_searching = true;
  if (own->is_searching) cut = go_on(channel);
  if (!own->is_searching) {
    free(own->search);
    own->search = NULL;
  }
  /* The result of another request may not hold for this one's memory: a long-lived request runs its own search. */
  const bool is_borrowed = channel->num_starts == FIRST_DUE && own->is_recalled;
  *next_due = own->is_searching ? channel->num_starts + 1 : is_borrowed ? CHECK_DUE : next_look(channel->num_starts);
  if (!cut) return 0;
  memcpy(end_byte, cut->end_byte, (size_t)cut->num * sizeof *end_byte);
  return cut->num;
}

static int make_plan(eb_channel *channel) {
  uint64_t next_due;
  int num = decide(channel, channel->plan + PLAN_ENDS, &next_due);
  if (num == 0) {
    num = channel->segments.num;
    memcpy(channel->plan + PLAN_ENDS, channel->segments.first_byte + 1, (size_t)num * sizeof *channel->plan);
  }
  channel->plan[PLAN_NUM] = num;
  channel->plan[PLAN_TOTAL] = channel->total_bytes;
  channel->plan[PLAN_NEXT_DUE] = (int64_t)next_due;
  return set_next(channel);
}

int eb_adapt_exchange(eb_channel *channel) {
  if (!is_due(channel)) return MPI_SUCCESS;
  if (!has_plan(channel)) return MPI_ERR_NO_MEM;
  const size_t most = PLAN_ENDS + (size_t)eb_tags_max_segments(&eb_domain.tags);
  if (!channel->is_send)
    return PMPI_Irecv(channel->plan, (int)(most * sizeof *channel->plan), MPI_BYTE, channel->wire_peer, plan_tag(channel), eb_domain.comm,
                      &channel->requests[channel->segments.num]);
  const int rc = make_plan(channel);
  if (rc != MPI_SUCCESS) return rc;
  const size_t bytes = (PLAN_ENDS + (size_t)channel->plan[PLAN_NUM]) * sizeof *channel->plan;
  return eb_send_queue_send(EB_SEND_CONTROL, channel->plan, bytes, channel->wire_peer, plan_tag(channel), eb_domain.comm);
}
