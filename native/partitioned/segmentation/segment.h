/* Segments: the messages into which a partitioned transfer is divided. Uses no MPI. */
#ifndef EB_SEGMENT_H
#define EB_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/segmentation/path.h"

/* The maximum length of a message, so that its byte count fits an int. */
#define EB_SEGMENT_MAX_BYTES (INT64_C(1) << 30)

/* With its request and its state a segment takes 80 bytes: 1.3 GB for so many. The system may promise much more memory than it has,
 * and end the process when it is written. */
#define EB_SEGMENTS_MAX_NUM (INT64_C(1) << 24)

/* How the segments of a request are spread over lanes; 0: the default. Both sides must use the same. */
typedef struct {
  int64_t num_lanes;   /* that the request uses, if there are so many; default: all */
  int64_t block_bytes; /* neighbouring bytes that go to one lane; default: an equal part of the transfer for each lane */
} eb_spread;

static inline bool eb_spread_equal(const eb_spread *a, const eb_spread *b) {
  return a->num_lanes == b->num_lanes && a->block_bytes == b->block_bytes;
}

/* Segment s holds the bytes first_byte[s] .. first_byte[s+1]-1; first_byte[num] is the total. A transfer of no
 * bytes is one empty segment, because its completion still carries information. Owns first_byte. */
typedef struct {
  int num;
  int64_t *first_byte;
  eb_spread spread; /* the default, until it is set */
  eb_path path;     /* messages, until it is set */
} eb_segments;

/* How many pieces eb_segments_uniform makes, if they are no more than EB_SEGMENTS_MAX_NUM. */
int64_t eb_segments_uniform_num(int64_t total_bytes, int64_t step_bytes);

/* All of these return 0, or -1 when memory is short or they are too many; then *segments is unchanged. */

/* Segments derived without a message: wanted_num pieces on 64-byte boundaries, none empty. Of several the first is shorter, the more
 * they are: where the two sides' totals differ, and so do their numbers of pieces, their first pieces would otherwise be equal in
 * proportion (half the total in one piece, all of it in two), and the receiver would wait for one that is never sent. Totals
 * in other proportions may still have equal first pieces. */
int eb_segments_canonical(int64_t total_bytes, int wanted_num, eb_segments *segments);

/* Pieces of step_bytes; the last one has the remaining bytes. */
int eb_segments_uniform(int64_t total_bytes, int64_t step_bytes, eb_segments *segments);

/* The pieces that end at the given ascending offsets, the last of which is the total; pieces longer than
 * EB_SEGMENT_MAX_BYTES are divided further. */
int eb_segments_from_ends(int num, const int64_t *end_byte, eb_segments *segments);

void eb_segments_free(eb_segments *segments);
bool eb_segments_equal(const eb_segments *a, const eb_segments *b);

/* The lane of a segment, among num_lanes: the block of its first byte, modulo the lanes of the request. Follows from the segments
 * alone, so that both sides compute the same. */
int eb_segments_lane(const eb_segments *segments, int segment, int num_lanes);

/* The segment of a byte; offsets at or past the total give the last segment. */
int eb_segments_find(const eb_segments *segments, int64_t byte);

/* The first and last segment that overlap [begin, end). An empty range belongs to the segment at `begin`. */
void eb_segments_cover(const eb_segments *segments, int64_t begin, int64_t end, int *first, int *last);

#endif
