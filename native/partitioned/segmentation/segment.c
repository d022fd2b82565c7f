/* Cuts transfers into segments and finds the segments of a byte range. */
#include "partitioned/segmentation/segment.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT_BYTES INT64_C(64)

static int allocate(int64_t num, eb_segments *made) {
  *made = (eb_segments){0};
  if (num > EB_SEGMENTS_MAX_NUM) return -1;
  made->first_byte = malloc(((size_t)num + 1) * sizeof *made->first_byte);
  made->num = (int)num;
  return made->first_byte ? 0 : -1;
}

static int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int eb_segments_canonical(int64_t total_bytes, int wanted_num, eb_segments *segments) {
  int64_t num = wanted_num;
  while (num > 1 && total_bytes / num < ALIGNMENT_BYTES * (num + 1)) num--;
  /* The second has what the first lacks, and the last what the others' alignment leaves, too. */
  if (divide_up(total_bytes, num) > EB_SEGMENT_MAX_BYTES - ALIGNMENT_BYTES * (num + 1))
    return eb_segments_uniform(total_bytes, EB_SEGMENT_MAX_BYTES, segments);
  eb_segments made;
  if (allocate(num, &made) != 0) return -1;
  for (int64_t s = 0; s < num; s++) made.first_byte[s] = total_bytes / num * s & ~(ALIGNMENT_BYTES - 1);
  if (num > 1) made.first_byte[1] -= ALIGNMENT_BYTES * num;
  made.first_byte[num] = total_bytes;
  *segments = made;
  return 0;
}

static int64_t within_limits(int64_t step_bytes) {
  if (step_bytes < 1) return 1;
  return step_bytes > EB_SEGMENT_MAX_BYTES ? EB_SEGMENT_MAX_BYTES : step_bytes;
}

int64_t eb_segments_uniform_num(int64_t total_bytes, int64_t step_bytes) {
  return total_bytes > 0 ? divide_up(total_bytes, within_limits(step_bytes)) : 1;
}

int eb_segments_uniform(int64_t total_bytes, int64_t step_bytes, eb_segments *segments) {
  const int64_t num = eb_segments_uniform_num(total_bytes, step_bytes);
  step_bytes = within_limits(step_bytes);
  eb_segments made;
  if (allocate(num, &made) != 0) return -1;
  for (int64_t s = 0; s < num; s++) made.first_byte[s] = s * step_bytes;
  made.first_byte[num] = total_bytes;
  *segments = made;
  return 0;
}

int eb_segments_from_ends(int num, const int64_t *end_byte, eb_segments *segments) {
  int64_t pieces = 0;
  for (int s = 0; s < num; s++) {
    const int64_t bytes = end_byte[s] - (s ? end_byte[s - 1] : 0);
    pieces += bytes > EB_SEGMENT_MAX_BYTES ? divide_up(bytes, EB_SEGMENT_MAX_BYTES) : 1;
  }
  eb_segments made;
  if (allocate(pieces, &made) != 0) return -1;
  int64_t at = 0;
  int piece = 0;
  for (int s = 0; s < num; s++) {
    do {
      made.first_byte[piece++] = at;
      at = end_byte[s] - at > EB_SEGMENT_MAX_BYTES ? at + EB_SEGMENT_MAX_BYTES : end_byte[s];
    } while (at < end_byte[s]);
  }
  made.first_byte[piece] = at;
  *segments = made;
  return 0;
}

void eb_segments_free(eb_segments *segments) {
  free(segments->first_byte);
  segments->first_byte = NULL;
  segments->num = 0;
}

bool eb_segments_equal(const eb_segments *a, const eb_segments *b) {
  return a->num == b->num && a->path == b->path && eb_spread_equal(&a->spread, &b->spread) &&
         memcmp(a->first_byte, b->first_byte, ((size_t)a->num + 1) * sizeof *a->first_byte) == 0;
}

int eb_segments_lane(const eb_segments *segments, int segment, int num_lanes) {
  const eb_spread *const spread = &segments->spread;
  const int64_t num = spread->num_lanes > 0 && spread->num_lanes < num_lanes ? spread->num_lanes : num_lanes;
  const int64_t total = segments->first_byte[segments->num];
  const int64_t block = spread->block_bytes > 0 ? spread->block_bytes : divide_up(total, num);
  return block > 0 ? (int)(segments->first_byte[segment] / block % num) : 0;
}

int eb_segments_find(const eb_segments *segments, int64_t byte) {
  int low = 0, high = segments->num - 1;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (segments->first_byte[middle] <= byte) low = middle;
    else high = middle - 1;
  }
  return low;
}

void eb_segments_cover(const eb_segments *segments, int64_t begin, int64_t end, int *first, int *last) {
  *first = eb_segments_find(segments, begin);
  *last = end > begin ? eb_segments_find(segments, end - 1) : *first;
}
