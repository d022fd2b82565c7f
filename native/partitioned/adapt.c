/* Observes a channel's starts, chooses its next segments, and tells the other side. */
#include "partitioned/adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/outbox.h"
#include "partitioned/world.h"

bool eb_adapt_exchanges(const eb_channel *channel) {
  /* What both sides know alike; a transfer of more segments than a plan can name keeps the canonical ones. */
  return eb_world.settings.mode.kind == EB_AUTO && channel->peer != MPI_PROC_NULL &&
         channel->total_bytes / EB_SEGMENT_MAX_BYTES < eb_tags_max_segments(&eb_domain.tags);
}

/* Does the receiver tell of this start? */
static bool is_reported(const eb_channel *channel) {
  return eb_adapt_exchanges(channel) && eb_plan_is_reported(channel->num_starts);
}

static int plan_tag(const eb_channel *channel) {
  return eb_tags_plan(&eb_domain.tags, channel->base, channel->num_ids);
}

static int report_tag(const eb_channel *channel) {
  return eb_tags_report(&eb_domain.tags, channel->base, channel->num_ids);
}

static bool can_gain(const eb_channel *channel) {
  return eb_plan_can_gain(channel->cost, channel->total_bytes, channel->partition_bytes);
}

int eb_adapt_begin(eb_channel *channel) {
  if (!channel->is_send || channel->mode.kind != EB_AUTO || !eb_adapt_exchanges(channel) || !can_gain(channel)) return MPI_SUCCESS;
  channel->ready_s = calloc((size_t)channel->num_partitions, EB_PLAN_RECORDS * sizeof *channel->ready_s);
  return channel->ready_s ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void eb_adapt_end(eb_channel *channel) {
  eb_report ignored;
  (void)eb_matching_take_report(&channel->report, &ignored);
  free(channel->ready_s);
  free(channel->plan);
}

int eb_adapt_start(eb_channel *channel) {
  const bool exchanges = eb_adapt_exchanges(channel);
  channel->record = exchanges && (channel->ready_s || !channel->is_send) ? eb_plan_record(channel->num_starts) : -1;
  channel->proposes = channel->is_send && exchanges && eb_plan_is_due(channel->num_starts + 1);
  if (!channel->is_send || !is_reported(channel)) return MPI_SUCCESS;
  eb_report unread;
  (void)eb_matching_take_report(&channel->report, &unread);
  return eb_matching_expect_report(channel->wire_peer, report_tag(channel), &channel->report);
}

/* Turns a plan's ends into the segments of the next start, if they differ from today's. */
static int set_next(eb_channel *channel) {
  const int64_t num = channel->plan[0];
  if (channel->plan[1] != channel->total_bytes) return MPI_ERR_TRUNCATE;
  eb_segments made;
  if (eb_segments_from_ends((int)num, channel->plan + 2, &made) != 0) return MPI_ERR_NO_MEM;
  if (eb_segments_equal(&made, &channel->segments)) eb_segments_free(&made);
  else channel->next_segments = made;
  return MPI_SUCCESS;
}

int eb_adapt_finish(eb_channel *channel) {
  if (!eb_adapt_exchanges(channel)) return MPI_SUCCESS;
  if (eb_plan_is_due(channel->num_starts)) {
    const int rc = set_next(channel);
    if (rc != MPI_SUCCESS) return rc;
  }
  if (!is_reported(channel)) return MPI_SUCCESS;
  eb_report report = {.start = channel->num_starts};
  for (int r = 0; r < EB_PLAN_RECORDS; r++) report.done_s[r] = channel->done_s[r];
  return eb_outbox_send(EB_LETTER_CONTROL, &report, sizeof report, channel->wire_peer, report_tag(channel), eb_domain.comm);
}

/* Clocks of two nodes drift apart by some microseconds a second: what is older cannot be compared any more. */
#define COMPARABLE_S 0.1

/* What the recorded starts took, if the receiver's report of them has come. */
static eb_observation observe(eb_channel *channel) {
  eb_report report;
  const double now_s = eb_now_s();
  if (channel->cost == &eb_world.settings.inter_node && now_s - channel->observed_at_s > COMPARABLE_S)
    eb_trial_forget_times(&channel->trial);
  channel->observed_at_s = now_s;
  if (!eb_matching_take_report(&channel->report, &report) || report.start + 2 != channel->num_starts)
    return (eb_observation){NAN, NAN, NAN};
  double ready_s[EB_PLAN_RECORDS], own_s[EB_PLAN_RECORDS];
  for (int r = 0; r < EB_PLAN_RECORDS; r++) {
    report.done_s[r] -= channel->done_s[r];
    ready_s[r] = channel->spent_s[r][0];
    own_s[r] = channel->spent_s[r][1];
  }
  return (eb_observation){eb_plan_typical_s(report.done_s, EB_PLAN_RECORDS), eb_plan_typical_s(ready_s, EB_PLAN_RECORDS),
                          eb_plan_typical_s(own_s, EB_PLAN_RECORDS)};
}

/* The predicted time of the segments in use. */
static double predict_now_s(const eb_channel *channel, const double *typical_s) {
  const int num = channel->segments.num;
  double *ready_s = calloc((size_t)num, sizeof *ready_s), result_s = 0;
  int64_t *bytes = calloc((size_t)num, sizeof *bytes);
  for (int p = 0; ready_s && p < channel->num_partitions; p++) {
    const eb_partition_state *partition = eb_partition(channel, p);
    for (int s = partition->first_segment; s <= partition->last_segment; s++)
      if (typical_s[p] > ready_s[s]) ready_s[s] = typical_s[p];
  }
  for (int s = 0; bytes && s < num; s++) bytes[s] = channel->segments.first_byte[s + 1] - channel->segments.first_byte[s];
  if (ready_s && bytes) result_s = eb_plan_predict_s(channel->cost, num, ready_s, bytes);
  free(ready_s);
  free(bytes);
  return result_s;
}

/* The most segments that a plan may name, so that with the cuts at EB_SEGMENT_MAX_BYTES they still fit the tags. */
static int max_planned(const eb_channel *channel) {
  return eb_tags_max_segments(&eb_domain.tags) - (int)(channel->total_bytes / EB_SEGMENT_MAX_BYTES);
}

/* A plan's memory: its number of ends, the total, the ends. */
static bool has_plan(eb_channel *channel) {
  if (!channel->plan)
    channel->plan = malloc((2 + (size_t)eb_tags_max_segments(&eb_domain.tags)) * sizeof *channel->plan);
  return channel->plan != NULL;
}

void eb_adapt_propose(eb_channel *channel) {
  eb_proposal *proposal = &channel->proposal;
  channel->proposes = false;
  proposal->num = 0;
  if (!channel->ready_s || max_planned(channel) < 2 || !has_plan(channel)) return;
  double *typical_s = malloc((size_t)channel->num_partitions * sizeof *typical_s), last_s = 0;
  if (!typical_s) return; /* the segments stay as they are */
  const int num_records = eb_plan_num_records(channel->num_starts + 1);
  for (int p = 0; p < channel->num_partitions; p++) {
    double records_s[EB_PLAN_RECORDS];
    for (int r = 0; r < EB_PLAN_RECORDS; r++) records_s[r] = channel->ready_s[(size_t)p * EB_PLAN_RECORDS + (size_t)r];
    typical_s[p] = eb_plan_typical_s(records_s, num_records);
    if (typical_s[p] > last_s) last_s = typical_s[p];
  }
  proposal->num = eb_plan_choose(channel->cost, channel->num_partitions, channel->partition_bytes, typical_s,
                                 max_planned(channel), channel->plan + 2, &proposal->best_s);
  proposal->one_s = eb_plan_predict_s(channel->cost, 1, &last_s, &channel->total_bytes);
  proposal->now_s = predict_now_s(channel, typical_s);
  free(typical_s);
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

/* The ends of the next segments, or 0 to keep those in use. */
static int decide(eb_channel *channel, int64_t *end_byte) {
  if (max_planned(channel) < 2) return 0;
  if (channel->mode.kind != EB_AUTO) return cut_equally(channel, end_byte);
  const eb_observation observed = observe(channel);
  eb_decision decision = EB_KEEP;
  if (channel->proposal.num > 0)
    decision = eb_trial_decide(&channel->trial, channel->num_starts, channel->segments.num == 1, &observed, &channel->proposal);
  else if (channel->cost->num > 0 && !channel->ready_s)
    decision = EB_USE_ONE; /* no plan can be better */
  if (decision != EB_USE_ONE) return decision == EB_KEEP ? 0 : channel->proposal.num;
  end_byte[0] = channel->total_bytes;
  return 1;
}

static int make_plan(eb_channel *channel) {
  int num = decide(channel, channel->plan + 2);
  if (num == 0) {
    num = channel->segments.num;
    memcpy(channel->plan + 2, channel->segments.first_byte + 1, (size_t)num * sizeof *channel->plan);
  }
  channel->plan[0] = num;
  channel->plan[1] = channel->total_bytes;
  return set_next(channel);
}

int eb_adapt_exchange(eb_channel *channel) {
  if (!eb_adapt_exchanges(channel) || !eb_plan_is_due(channel->num_starts)) return MPI_SUCCESS;
  if (!has_plan(channel)) return MPI_ERR_NO_MEM;
  const size_t most = 2 + (size_t)eb_tags_max_segments(&eb_domain.tags);
  if (!channel->is_send)
    return PMPI_Irecv(channel->plan, (int)(most * sizeof *channel->plan), MPI_BYTE, channel->wire_peer, plan_tag(channel), eb_domain.comm,
                      &channel->requests[channel->segments.num]);
  const int rc = make_plan(channel);
  if (rc != MPI_SUCCESS) return rc;
  const size_t bytes = (2 + (size_t)channel->plan[0]) * sizeof *channel->plan;
  return eb_outbox_send(EB_LETTER_CONTROL, channel->plan, bytes, channel->wire_peer, plan_tag(channel), eb_domain.comm);
}
