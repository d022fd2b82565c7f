/* Looks for a rank among those of the node, which are in order. */
#include "partitioned/node/near_ranks.h"

#include <stdlib.h>
#include <string.h>

static struct {
  int *ranks, num;
} near_ranks;

bool eb_near_begin(const int *ranks, int num) {
  near_ranks.ranks = malloc((size_t)num * sizeof *ranks);
  if (!near_ranks.ranks) return false;
  memcpy(near_ranks.ranks, ranks, (size_t)num * sizeof *ranks);
  near_ranks.num = num;
  return true;
}

void eb_near_end(void) {
  free(near_ranks.ranks);
  near_ranks.ranks = NULL;
  near_ranks.num = 0;
}

int eb_near_num(void) { return near_ranks.num; }

int eb_near_place(int rank) {
  int first = 0, end = near_ranks.num;
  while (end - first > 1) {
    const int middle = first + (end - first) / 2;
    if (near_ranks.ranks[middle] <= rank) first = middle;
    else end = middle;
  }
  return first;
}
