/* What a segmentation message holds. Uses no MPI. */
#ifndef EB_MESSAGE_H
#define EB_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "partitioned/segmentation/planner.h"
#include "partitioned/segmentation/segment.h"

/* Numbers, the ends of the segments used from the next start on, and those of a trial. */
enum {
  EB_MESSAGE_TOTAL,
  EB_MESSAGE_NEXT_DUE,
  EB_MESSAGE_START, /* of the message */
  EB_MESSAGE_FEEDBACK_FROM,
  EB_MESSAGE_FEEDBACK_END,
  EB_MESSAGE_TRIAL_FROM,
  EB_MESSAGE_TRIAL_END,
  EB_MESSAGE_LANES, /* how the segments are spread over lanes */
  EB_MESSAGE_BLOCK_BYTES,
  EB_MESSAGE_PATH, /* of the segments used from the next start on, and of those of a trial */
  EB_MESSAGE_TRIED_PATH,
  EB_MESSAGE_OFFSET, /* of the memory that each path but messages uses */
  EB_MESSAGE_LAST_OFFSET = EB_MESSAGE_OFFSET + EB_NUM_PATHS - 1 - EB_PATH_RING,
  EB_MESSAGE_NUM,
  EB_MESSAGE_NUM_TRIED, /* 0: no trial */
  EB_MESSAGE_ENDS
};

/* How the segments are spread over lanes. */
static inline eb_spread eb_message_spread(const int64_t *message) {
  return (eb_spread){message[EB_MESSAGE_LANES], message[EB_MESSAGE_BLOCK_BYTES]};
}

/* Does it name a path? */
static inline bool eb_message_names(const int64_t *message, int path) {
  return message[EB_MESSAGE_PATH] == path || (message[EB_MESSAGE_NUM_TRIED] > 0 && message[EB_MESSAGE_TRIED_PATH] == path);
}

/* Where the memory of a path is, which is not EB_PATH_MESSAGE. */
static inline int64_t *eb_message_offset(int64_t *message, int path) { return &message[EB_MESSAGE_OFFSET + path - EB_PATH_RING]; }

/* The segments for which it needs memory. */
static inline int eb_message_most_segments(const int64_t *message) {
  return (int)(message[EB_MESSAGE_NUM] > message[EB_MESSAGE_NUM_TRIED] ? message[EB_MESSAGE_NUM] : message[EB_MESSAGE_NUM_TRIED]);
}

/* Writes the ends of a cut (NULL: none); returns their number. */
static inline int eb_message_write_ends(int64_t *end_byte, const eb_cut *cut) {
  if (!cut) return 0;
  memcpy(end_byte, cut->end_byte, (size_t)cut->num * sizeof *end_byte);
  return cut->num;
}

/* Are these segments of a transfer of total_bytes, at most max_segments of them? A copy would go where they point. */
bool eb_message_is_valid(const int64_t *message, int64_t total_bytes, int max_segments);

#endif
