/* Sends a segment, from a copy while the receiver may not have processed the setup. */
#include "partitioned/channel/send.h"

#include "partitioned/process/clock.h"
#include "partitioned/process/send_time.h"

#define MIN_AWAITED_BYTES (INT64_C(32) * 1024)
#define COPIED_BYTES_PER_S 5e9

/* A receiver that is there answers within microseconds: before a large copy, its answer is waited for as long as the copy
 * would take, and no longer, for it may be anywhere. */
static void await_answer(eb_channel *channel, int64_t num_bytes) {
  eb_match *const match = &channel->match;
  if (num_bytes < MIN_AWAITED_BYTES || !eb_match_awaits_answer(match) || eb_wire_is_framed(&channel->wire)) return;
  const double end_s = eb_now_s() + (double)num_bytes / COPIED_BYTES_PER_S;
  do {
    eb_matching_progress(); /* the receiver may be waiting for our answer in the same way */
    eb_matching_collect();
  } while (eb_match_awaits_answer(match) && eb_wire_error(&channel->wire) == MPI_SUCCESS && eb_now_s() < end_s);
  if (eb_match_is_accepted(match) && eb_wire_build(&channel->wire) == MPI_SUCCESS) eb_wire_end_copying(&channel->wire);
}

static void count_time(eb_adaptation *adaptation, double spent_s) {
  eb_send_time_add_send(spent_s);
  if (eb_adaptation_is_observed(adaptation)) eb_adaptation_note_sent(adaptation, spent_s);
}

bool eb_channel_send(eb_channel *channel, int segment) {
  eb_wire *const wire = &channel->wire;
  const bool is_timed = eb_send_time_is_counted(); /* of all channels, while one of them is observed */
  const double begin_s = is_timed ? eb_stopwatch_s() : 0, traced_s = eb_statistics_on ? eb_now_s() : 0;
  if (eb_wire_is_copying(wire)) await_answer(channel, eb_wire_segment_bytes(wire, segment));
  eb_wire_send(wire, segment);
  if (is_timed) count_time(&channel->adaptation, eb_stopwatch_s() - begin_s);
  if (eb_statistics_on) {
    eb_statistics_segment_sent(&channel->statistics, segment, eb_wire_segment_bytes(wire, segment), traced_s);
    if (!eb_wire_is_in_memory(wire)) eb_statistics_lane_used(eb_wire_lane(wire, segment));
  }
  return eb_wire_count_sent(wire);
}
