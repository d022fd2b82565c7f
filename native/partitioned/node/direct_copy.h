/* Copies the chunks of a direct transfer. */
#ifndef EB_DIRECT_COPY_H
#define EB_DIRECT_COPY_H

#include <stdint.h>

#include "partitioned/node/direct.h"
#include "partitioned/node/peer_memory.h"

/* A segment of a start, in the memory of this side: `bytes` is the transfer's first byte. */
typedef struct {
  uint64_t start;
  int segment;
  char *bytes;
  int64_t first_byte, num_bytes;
} eb_direct_part;

/* Claims and copies chunks of it, up to so many; returns how many. One that cannot be copied counts as done, and failed. */
int eb_direct_copy(eb_direct *direct, const eb_peer *peer, const eb_direct_part *part, int most);

#endif
