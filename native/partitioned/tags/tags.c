/* Divides the tags of the domain among control messages, canonical transfers and channels. */
#include "partitioned/tags/tags.h"

static int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

eb_tags eb_tags_layout(int64_t tag_ub) {
  int bits = 0;
  while (bits < EB_TAG_BITS_MAX && (INT64_C(1) << (bits + 1)) - 1 <= tag_ub) bits++;
  /* 126 segments if there are enough bits; Intel MPI over tcp has 19 bits and gets 14. */
  const int segment_bits = clamp(bits / 4, 4, 7);
  const int rest = bits - 1 - segment_bits;
  const int comm_bits = rest >= 18 ? 3 : rest >= 14 ? 1 : 0;
  const int order_bits = (rest - comm_bits + 1) / 2;
  return (eb_tags){bits, segment_bits, order_bits, rest - comm_bits - order_bits, comm_bits};
}

int eb_tags_max_segments(const eb_tags *tags) { return (1 << tags->segment_bits) - 2; }

bool eb_tags_is_canonical(const eb_tags *tags, int comm, int user_tag, uint64_t order) {
  return comm >= 0 && comm < (1 << tags->comm_bits) && user_tag < (1 << tags->user_bits) &&
         order < (UINT64_C(1) << tags->order_bits);
}

int eb_tags_canonical_base(const eb_tags *tags, int comm, int user_tag, uint64_t order) {
  const uint64_t user = (uint64_t)comm << tags->user_bits | (uint64_t)user_tag;
  return (int)((user << tags->order_bits | order) << tags->segment_bits);
}

int64_t eb_tags_num_ids(const eb_tags *tags) { return INT64_C(1) << (tags->bits - 1 - tags->segment_bits); }

int eb_tags_channel_base(const eb_tags *tags, int64_t id) {
  return (int)((UINT64_C(1) << (tags->bits - 1)) | (uint64_t)id << tags->segment_bits);
}

int64_t eb_tags_ids_needed(const eb_tags *tags, int64_t num_segments) {
  const int64_t most = eb_tags_max_segments(tags);
  return (num_segments + most - 1) / most;
}

int eb_tags_segment(const eb_tags *tags, int base, int segment) {
  const int most = eb_tags_max_segments(tags);
  return base + (segment / most << tags->segment_bits) + segment % most;
}

int eb_tags_segmentation(const eb_tags *tags, int base, int64_t num_ids) {
  return (int)(base + (num_ids << tags->segment_bits) - 1);
}

int eb_tags_feedback(const eb_tags *tags, int base, int64_t num_ids) { return eb_tags_segmentation(tags, base, num_ids) - 1; }

int eb_tags_control(const eb_tags *tags, int what) { return eb_tags_channel_base(tags, 0) + what; }
