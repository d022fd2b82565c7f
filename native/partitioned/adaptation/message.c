/* Checks what a segmentation message says. */
#include "partitioned/adaptation/message.h"

#include "partitioned/node/chunks.h"

/* Are these ends of segments of the transfer, which the path can have? */
static bool are_ends(const int64_t *end_byte, int64_t num, int64_t path, int64_t total_bytes) {
  int64_t before = 0;
  for (int64_t s = 0; s < num; before = end_byte[s++])
    if (end_byte[s] < before || end_byte[s] > total_bytes) return false;
  if (before != total_bytes || path < EB_PATH_MESSAGE || path >= EB_NUM_PATHS) return false;
  return path == EB_PATH_MESSAGE || num <= EB_NODE_MAX_SEGMENTS;
}

bool eb_message_is_valid(const int64_t *message, int64_t total_bytes, int max_segments) {
  const int64_t num = message[EB_MESSAGE_NUM], num_tried = message[EB_MESSAGE_NUM_TRIED];
  if (num < 1 || num > max_segments || num_tried < 0 || num_tried > EB_CUT_MAX_SEGMENTS) return false;
  return are_ends(message + EB_MESSAGE_ENDS, num, message[EB_MESSAGE_PATH], total_bytes) &&
         (num_tried == 0 || are_ends(message + EB_MESSAGE_ENDS + num, num_tried, message[EB_MESSAGE_TRIED_PATH], total_bytes));
}
