/* Keeps the results of the last searches. */
#include "partitioned/adaptation/learned.h"

#include <math.h>

#include "partitioned/process/world.h"

/* A search is not repeated if the ready times differ by at most these fractions of themselves and of one message's time. */
#define ALIKE 0.25
#define ALIKE_MESSAGE 0.1

enum { NUM_LEARNED = 64 };
static struct {
  int peer, num_partitions;
  int64_t total_bytes; /* 0: an empty place */
  eb_learned result;
} learned[NUM_LEARNED];
static unsigned num_learned; /* ever; places are taken in turn */

eb_readiness eb_readiness_of(double *ready_s, int num) {
  eb_planner_sort_s(ready_s, num);
  return (eb_readiness){ready_s[num - 1] - ready_s[0], ready_s[num - 1] - ready_s[num / 2]};
}

static bool is_alike(const eb_readiness *a, const eb_readiness *b, double message_s) {
  return fabs(a->first_s - b->first_s) <= ALIKE * fmax(a->first_s, b->first_s) + ALIKE_MESSAGE * message_s &&
         fabs(a->half_s - b->half_s) <= ALIKE * fmax(a->half_s, b->half_s) + ALIKE_MESSAGE * message_s;
}

/* The place of such a transfer, or -1. Under eb_lock. */
static int find(const eb_transfer *transfer, const eb_readiness *seen) {
  const double message_s = eb_cost_time_s(transfer->cost, transfer->total_bytes);
  for (int k = 0; k < NUM_LEARNED; k++)
    if (learned[k].total_bytes == transfer->total_bytes && learned[k].peer == transfer->wire_peer &&
        learned[k].num_partitions == transfer->num_partitions && is_alike(&learned[k].result.seen, seen, message_s))
      return k;
  return -1;
}

bool eb_learned_recall(const eb_transfer *transfer, eb_learned *result) {
  eb_lock();
  const int place = find(transfer, &result->seen);
  if (place >= 0) {
    result->cut = learned[place].result.cut;
    result->promise = learned[place].result.promise;
  }
  eb_unlock();
  return place >= 0;
}

void eb_learned_keep(const eb_transfer *transfer, const eb_learned *result) {
  eb_lock();
  int place = find(transfer, &result->seen);
  if (place < 0) place = (int)(num_learned++ % NUM_LEARNED);
  learned[place].peer = transfer->wire_peer;
  learned[place].num_partitions = transfer->num_partitions;
  learned[place].total_bytes = transfer->total_bytes;
  learned[place].result = *result;
  eb_unlock();
}
