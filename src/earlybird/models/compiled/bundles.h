/* The messages that share both ends of groups: those that always have the same rate are a bundle. */
#ifndef EARLYBIRD_MODELS_BUNDLES_H
#define EARLYBIRD_MODELS_BUNDLES_H

#include <stdbool.h>
#include <stdint.h>

#include "models.h"

/* Messages of one class between the same two groups, by_process also to the same receiver. They have received the same number
 * of bytes at any time and complete in order of size, so one number describes all of them. The bundles between the same two
 * groups are a pair. */
typedef struct {
  uint32_t first, end; /* of its messages in eb_flows.message */
  uint32_t pair, message_class;
  uint32_t receiver; /* only by_process */
} eb_bundle;

typedef struct {
  uint32_t src_end, dst_end;
} eb_pair;

struct eb_flows {
  int64_t num_messages, num_classes, num_ranks, num_bundles, num_pairs, num_groups;
  bool by_process;
  uint32_t *message;  /* by bundle, then by size */
  int64_t *bytes;     /* of each of these */
  uint32_t *src, *dst; /* of each of these */
  uint32_t *group;    /* of each rank */
  eb_bundle *bundles; /* by pair */
  eb_pair *pairs;     /* by sending end, then by receiving end */
  int64_t *num_sends, *num_receives; /* of each rank */
  double *fraction;                  /* [rank][class] of the bytes that it receives, only by_process */
};

#endif
