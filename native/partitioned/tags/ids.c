/* Gives out ranges of channel ids: the first gap that is wide enough. */
#include "partitioned/tags/ids.h"

#include <stdlib.h>
#include <string.h>

void eb_ids_begin(eb_ids *ids, int64_t begin, int64_t end) { *ids = (eb_ids){.begin = begin, .end = end}; }

void eb_ids_end(eb_ids *ids) {
  free(ids->ranges);
  *ids = (eb_ids){0};
}

/* The index of the first range that begins at or after `id`. */
static int lower_bound(const eb_ids *ids, int64_t id) {
  int low = 0, high = ids->num_ranges;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ids->ranges[middle].first < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

static int64_t insert(eb_ids *ids, int at, int64_t first, int64_t num, void *owner) {
  if (ids->num_ranges == ids->capacity) {
    const int capacity = ids->capacity ? 2 * ids->capacity : 16;
    eb_id_range *grown = realloc(ids->ranges, (size_t)capacity * sizeof *grown);
    if (!grown) return -1;
    ids->ranges = grown;
    ids->capacity = capacity;
  }
  memmove(ids->ranges + at + 1, ids->ranges + at, (size_t)(ids->num_ranges - at) * sizeof *ids->ranges);
  ids->ranges[at] = (eb_id_range){first, num, 2, owner};
  ids->num_ranges++;
  return first;
}

int64_t eb_ids_take(eb_ids *ids, int64_t num, void *owner) {
  if (num < 1 || num > ids->end - ids->begin) return -1;
  const eb_id_range *const last = ids->num_ranges ? &ids->ranges[ids->num_ranges - 1] : NULL;
  const int64_t last_end = last ? last->first + last->num : ids->begin;
  /* The usual case: behind the last range. */
  if (last_end + num <= ids->end) return insert(ids, ids->num_ranges, last_end, num, owner);
  int64_t free_from = ids->begin;
  for (int r = 0; r < ids->num_ranges; r++) {
    if (ids->ranges[r].first - free_from >= num) return insert(ids, r, free_from, num, owner);
    free_from = ids->ranges[r].first + ids->ranges[r].num;
  }
  return -1;
}

/* The range that begins at `first`, or -1. */
static int find(const eb_ids *ids, int64_t first) {
  const int at = lower_bound(ids, first);
  return at < ids->num_ranges && ids->ranges[at].first == first ? at : -1;
}

void *eb_ids_owner(const eb_ids *ids, int64_t first) {
  const int at = find(ids, first);
  return at < 0 ? NULL : ids->ranges[at].owner;
}

void eb_ids_disown(eb_ids *ids, int64_t first) {
  const int at = find(ids, first);
  if (at >= 0) ids->ranges[at].owner = NULL;
  eb_ids_release(ids, first);
}

void eb_ids_release(eb_ids *ids, int64_t first) {
  const int at = find(ids, first);
  if (at < 0 || --ids->ranges[at].holders > 0) return;
  ids->num_ranges--;
  memmove(ids->ranges + at, ids->ranges + at + 1, (size_t)(ids->num_ranges - at) * sizeof *ids->ranges);
}
