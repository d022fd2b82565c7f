/* Gives out ranges of channel ids and takes them back. Knows no MPI.
 *
 * An id is in use until both sides have released it: the sender by freeing its request, the receiver by a release
 * message. Without the second, a receiver that is behind could take a new channel's message for an old one's.
 */
#ifndef EB_IDS_H
#define EB_IDS_H

#include <stdint.h>

typedef struct {
  int64_t first, num; /* ids first .. first+num-1 */
  int holders;        /* 2, 1, then the range is free */
  void *owner;        /* the sender, until it disowns the range */
} eb_id_range;

typedef struct {
  int64_t begin, end; /* ids are begin .. end-1 */
  eb_id_range *ranges; /* sorted by first */
  int num_ranges, capacity;
} eb_ids;

/* Ids from `begin`, which is at least 1. */
void eb_ids_begin(eb_ids *ids, int64_t begin, int64_t end);
void eb_ids_end(eb_ids *ids);
/* The first of `num` consecutive ids, or -1 when none are left or memory is short. */
int64_t eb_ids_take(eb_ids *ids, int64_t num, void *owner);
/* Who took the range that begins at `first`; NULL once it has disowned it, and for unknown ranges. */
void *eb_ids_owner(const eb_ids *ids, int64_t first);
/* One holder releases the range that begins at `first`. Unknown ranges are ignored. */
void eb_ids_release(eb_ids *ids, int64_t first);
/* The owner releases it. */
void eb_ids_disown(eb_ids *ids, int64_t first);

#endif
