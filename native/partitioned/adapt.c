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
         channel->total_bytes / EB_SEGMENT_MAX_BYTES < eb_tags_max_segments(&channel->view->shadow->tags);
}

static size_t plan_bytes(const eb_channel *channel) {
  return (2 + (size_t)eb_tags_max_segments(&channel->view->shadow->tags)) * sizeof *channel->plan;
}

/* Turns a plan's ends into the segments of the next start, if they differ from today's. */
int eb_adapt_set_next(eb_channel *channel) {
  const int64_t num = channel->plan[0];
  if (channel->plan[1] != channel->total_bytes) return MPI_ERR_TRUNCATE;
  eb_segments made;
  if (eb_segments_from_ends((int)num, channel->plan + 2, &made) != 0) return MPI_ERR_NO_MEM;
  if (eb_segments_equal(&made, &channel->segments)) eb_segments_free(&made);
  else channel->next_segments = made;
  return MPI_SUCCESS;
}

int eb_adapt_report(eb_channel *channel) {
  eb_report report = {.start = channel->num_starts, .base = channel->base};
  for (int r = 0; r < EB_PLAN_RECORDS; r++) report.done_s[r] = channel->done_s[r];
  return eb_matching_report(channel->view->shadow, channel->peer, &report);
}

/* The typical time of the recorded starts if the receiver's report of them has come, else NAN. */
static double observed_s(const eb_channel *channel) {
  eb_report report;
  if (!eb_matching_take_report(channel->view->shadow, channel->peer, channel->base, &report) ||
      report.start + 2 != channel->num_starts)
    return NAN;
  for (int r = 0; r < EB_PLAN_RECORDS; r++) report.done_s[r] -= channel->done_s[r];
  return eb_plan_typical_s(report.done_s, EB_PLAN_RECORDS);
}

void eb_adapt_forget(eb_channel *channel) { (void)observed_s(channel); }

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

bool eb_adapt_can_gain(const eb_channel *channel) {
  return eb_plan_can_gain(channel->cost, channel->total_bytes, channel->partition_bytes);
}

/* Chooses the next segments from recorded times; writes their ends and returns how many, 0 to keep today's. */
static int choose(eb_channel *channel, int max_segments, int64_t *end_byte) {
  double *typical_s = malloc((size_t)channel->num_partitions * sizeof *typical_s);
  double observed = observed_s(channel), best_s = 0, last_s = 0;
  if (!typical_s || channel->cost->num == 0 || !channel->ready_s) {
    free(typical_s);
    if (channel->cost->num == 0 || eb_adapt_can_gain(channel)) return 0;
    end_byte[0] = channel->total_bytes;
    return 1;
  }
  for (int p = 0; p < channel->num_partitions; p++) {
    typical_s[p] = eb_plan_typical_s(channel->ready_s + (size_t)p * EB_PLAN_RECORDS, eb_plan_num_records(channel->num_starts));
    if (typical_s[p] > last_s) last_s = typical_s[p];
  }
  int num = eb_plan_choose(channel->cost, channel->num_partitions, channel->partition_bytes, typical_s, max_segments, end_byte,
                           &best_s);
  const double one_s = eb_plan_predict_s(channel->cost, 1, &last_s, &channel->total_bytes);
  const eb_decision decision =
      eb_trial_decide(&channel->trial, channel->num_starts, channel->segments.num == 1, observed,
                      predict_now_s(channel, typical_s), best_s, one_s);
  free(typical_s);
  if (decision == EB_KEEP) return 0;
  if (decision == EB_USE_ONE) {
    num = 1;
    end_byte[0] = channel->total_bytes;
  }
  return num;
}

static int make_plan(eb_channel *channel) {
  const int max_segments = eb_tags_max_segments(&channel->view->shadow->tags);
  const int64_t step_bytes = eb_mode_step_bytes(channel->mode, channel->num_partitions, channel->partition_bytes);
  /* Segments are cut at EB_SEGMENT_MAX_BYTES, and with these cuts too they must fit the tags. */
  const int64_t cuts = channel->total_bytes / EB_SEGMENT_MAX_BYTES;
  int num = 0;
  if (2 * cuts + 2 <= max_segments) {
    if (step_bytes) {
      int64_t step = step_bytes;
      while ((channel->total_bytes + step - 1) / step + cuts > max_segments) step += channel->partition_bytes;
      for (int64_t end = step; end < channel->total_bytes; end += step) channel->plan[2 + num++] = end;
      channel->plan[2 + num++] = channel->total_bytes;
    } else {
      num = choose(channel, max_segments - (int)cuts, channel->plan + 2);
    }
  }
  if (num == 0) {
    num = channel->segments.num;
    memcpy(channel->plan + 2, channel->segments.first_byte + 1, (size_t)num * sizeof *channel->plan);
  }
  channel->plan[0] = num;
  channel->plan[1] = channel->total_bytes;
  return eb_adapt_set_next(channel);
}

int eb_adapt_exchange(eb_channel *channel) {
  if (!channel->plan && !(channel->plan = malloc(plan_bytes(channel)))) return MPI_ERR_NO_MEM;
  MPI_Request *request = &channel->requests[channel->segments.num];
  eb_shadow *shadow = channel->view->shadow;
  const int tag = eb_tags_plan(&shadow->tags, channel->base, channel->num_ids);
  if (!channel->is_send)
    return PMPI_Irecv(channel->plan, (int)plan_bytes(channel), MPI_BYTE, channel->peer, tag, shadow->comm, request);
  const int rc = make_plan(channel);
  if (rc != MPI_SUCCESS) return rc;
  const size_t bytes = (2 + (size_t)channel->plan[0]) * sizeof *channel->plan;
  return eb_outbox_send(EB_LETTER_CONTROL, channel->plan, bytes, channel->peer, tag, shadow->comm);
}
