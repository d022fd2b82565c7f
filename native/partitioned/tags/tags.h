/* The layout of the tags of the domain's communicators. Uses no MPI.
 *
 * A tag is a base plus a segment's index. The last two indices of every base belong to segmentation messages and feedback.
 * The upper half of the tags belongs to channels, whose bases a setup message sends to the receiver. The lower half belongs to
 * canonical transfers, whose base follows from the communicator, the user's tag and the position in the matching order.
 */
#ifndef EB_TAGS_H
#define EB_TAGS_H

#include <stdbool.h>
#include <stdint.h>

enum { EB_TAG_BITS_MIN = 15, EB_TAG_BITS_MAX = 31 };

typedef struct {
  int bits;         /* tags are below 2^bits */
  int segment_bits; /* low bits: the segment */
  int order_bits;   /* then the place in the matching order */
  int user_bits;    /* then the user's tag */
  int comm_bits;    /* then the communicator */
} eb_tags;

/* The layout for tags 0 .. tag_ub, the same on every rank that has the same tag_ub (MPI 4.1 section 9.1.2 makes
 * the value the same everywhere). MPI guarantees 2^15 tags. */
eb_tags eb_tags_layout(int64_t tag_ub);

/* Segments of one base, without the last two tags. */
int eb_tags_max_segments(const eb_tags *tags);

/* Is there a canonical base for the order-th (from 0) transfer of a user's tag on a communicator? The communicator has a number
 * from 0; -1: none. Both sides must pass the same arguments. */
bool eb_tags_is_canonical(const eb_tags *tags, int comm, int user_tag, uint64_t order);
int eb_tags_canonical_base(const eb_tags *tags, int comm, int user_tag, uint64_t order);

/* The tag of a segment, of a transfer whose base spans as many ids as it needs. */
int eb_tags_segment(const eb_tags *tags, int base, int segment);

/* Channel ids run from 1; id 0 is the control channel. */
int64_t eb_tags_num_ids(const eb_tags *tags);
int eb_tags_channel_base(const eb_tags *tags, int64_t id);
/* The number of consecutive ids for the segments and the last two tags of each. */
int64_t eb_tags_ids_needed(const eb_tags *tags, int64_t num_segments);

/* The tags of segmentation messages (to the receiver) and feedback (to the sender) of a transfer whose base spans num_ids ids
 * (1 for canonical ones). They differ, because two ranks may send to each other with the same base. */
int eb_tags_segmentation(const eb_tags *tags, int base, int64_t num_ids);
int eb_tags_feedback(const eb_tags *tags, int base, int64_t num_ids);

enum { EB_CONTROL_SETUP = 0, EB_CONTROL_ANSWER = 1, EB_CONTROL_FRAME = 2 };
int eb_tags_control(const eb_tags *tags, int what);

#endif
