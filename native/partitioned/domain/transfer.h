/* What the creation of a channel fixes about its transfer. Constant from then on, so every part of the channel may read it. */
#ifndef EB_TRANSFER_H
#define EB_TRANSFER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/process/config.h"
#include "partitioned/process/world.h"
#include "partitioned/segmentation/cost.h"
#include "partitioned/segmentation/segment.h"

typedef struct {
  bool is_send;
  int peer, tag; /* as the program gave them */
  int wire_peer; /* the peer's rank in the domain, unless the peer is MPI_PROC_NULL */
  int num_partitions;
  int64_t partition_bytes, total_bytes;
  eb_mode mode;        /* of this side: an info key is known only to the sender */
  eb_spread spread;    /* likewise */
  const eb_cost *cost; /* of messages between the two sides */
} eb_transfer;

static inline bool eb_transfer_is_null(const eb_transfer *transfer) { return transfer->peer == MPI_PROC_NULL; }

static inline bool eb_transfer_is_inter_node(const eb_transfer *transfer) { return transfer->cost == &eb_world.config.inter_node; }

static inline const eb_agreement *eb_transfer_agreement(const eb_transfer *transfer) {
  return &eb_world.agreements[eb_transfer_is_inter_node(transfer)];
}

#endif
