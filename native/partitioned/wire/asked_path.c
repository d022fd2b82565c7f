/* Finds out why a request cannot take a path, from what limits it first. */
#include "partitioned/wire/asked_path.h"

#include <stdatomic.h>
#include <stdio.h>

#include "partitioned/node/direct.h"
#include "partitioned/node/near_ranks.h"
#include "partitioned/node/neighbours.h"
#include "partitioned/node/pool.h"
#include "partitioned/node/ring.h"
#include "partitioned/process/world.h"

static atomic_llong num_refused;

eb_path eb_asked_path(void) {
  const eb_node_path asked = eb_world.config.node_path;
  return asked == EB_NODE_RING ? EB_PATH_RING : asked == EB_NODE_DIRECT ? EB_PATH_DIRECT : EB_PATH_MESSAGE;
}

const char *eb_path_name(eb_path path) {
  static const char *const names[EB_NUM_PATHS] = {"message", "ring", "direct"};
  return names[path];
}

static void describe(const eb_transfer *transfer, bool is_framed, int num_segments, char *reason, size_t size) {
  const eb_config *const config = &eb_world.config;
  const bool is_ring = eb_asked_path() == EB_PATH_RING;
  const int64_t needed = is_ring ? eb_ring_bytes(transfer->total_bytes) : (int64_t)sizeof(eb_direct_memory);
  if (config->mode.kind != EB_AUTO)
    snprintf(reason, size, "EARLYBIRD_SEGMENTS or EARLYBIRD_AGGR_SIZE fixes the segments of all requests");
  else if (is_framed) snprintf(reason, size, "it has no tags of its own");
  else if (num_segments > EB_NODE_MAX_SEGMENTS)
    snprintf(reason, size, "it has %d segments, and the path takes %d", num_segments, EB_NODE_MAX_SEGMENTS);
  else if (!eb_pool_may_have(needed))
    snprintf(reason, size,
             "it needs %lld bytes of shared memory; set EARLYBIRD_PAIR_BYTES (%lld) and EARLYBIRD_NODE_BYTES (%lld) higher",
             (long long)needed, (long long)config->pair_bytes, (long long)config->node_bytes);
  else if (!eb_pool_has_room(transfer->wire_peer, needed))
    snprintf(reason, size, "other requests have the memory; set EARLYBIRD_PAIR_BYTES (%lld) or EARLYBIRD_NODE_BYTES (%lld) higher",
             (long long)config->pair_bytes, (long long)config->node_bytes);
  else
    snprintf(reason, size, "%s",
             is_ring ? "the processor cannot read its buffer" : "the system cannot copy its buffer, or now forbids it");
}

void eb_asked_path_refused(const eb_transfer *transfer, bool is_framed, int num_segments) {
  char reason[240];
  if (transfer->total_bytes == 0 || eb_transfer_is_null(transfer) || eb_transfer_is_inter_node(transfer) || eb_near_num() == 1)
    return;
  if (atomic_fetch_add_explicit(&num_refused, 1, memory_order_relaxed) > 0) return;
  /* Those of all requests were said in MPI_Init. */
  if (!eb_pool_is_shared() || (eb_asked_path() == EB_PATH_DIRECT && !eb_neighbours_are_reached())) return;
  describe(transfer, is_framed, num_segments, reason, sizeof reason);
  fprintf(stderr, "earlybird: rank %d: EARLYBIRD_NODE_PATH is %s, but a request of %lld bytes to rank %d uses messages: %s\n",
          eb_world.rank, eb_path_name(eb_asked_path()), (long long)transfer->total_bytes, transfer->peer, reason);
}

int64_t eb_asked_path_num_refused(void) { return atomic_load_explicit(&num_refused, memory_order_relaxed); }
