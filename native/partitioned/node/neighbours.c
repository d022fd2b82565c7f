/* Exchanges the numbers of the processes, and tries to reach each. */
#include "partitioned/node/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/node/near_ranks.h"
#include "partitioned/process/world.h"

static eb_peer *peers; /* [ranks of the node] NULL: they do not reach one another */

static int try_all(void) {
  int error = 0;
  for (int k = 0; k < eb_near_num() && error == 0; k++) error = eb_peer_try(&peers[k]);
  return error;
}

void eb_neighbours_begin(MPI_Comm node, bool is_asked) {
  int all = 0;
  if (eb_near_num() == 1) return;
  const eb_peer self = eb_peer_self();
  peers = malloc((size_t)eb_near_num() * sizeof *peers);
  int able = peers != NULL;
  /* A rank without memory for the answers would leave the others alone in the exchange. */
  if (PMPI_Allreduce(&able, &all, 1, MPI_INT, MPI_MIN, node) == MPI_SUCCESS && all) {
    PMPI_Allgather(&self, sizeof self, MPI_BYTE, peers, sizeof self, MPI_BYTE, node);
    const int error = try_all();
    if (error && is_asked)
      fprintf(stderr,
              "earlybird: rank %d: the ranks of this node use messages, because they cannot reach each other's memory: %s\n",
              eb_world.rank, strerror(error));
    able = error == 0;
    /* Also so that no rank goes on, and ends, while others try it. */
    if (PMPI_Allreduce(&able, &all, 1, MPI_INT, MPI_MIN, node) != MPI_SUCCESS) all = 0;
  }
  if (!all) eb_neighbours_end();
}

void eb_neighbours_end(void) {
  free(peers);
  peers = NULL;
}

bool eb_neighbours_are_reached(void) { return peers != NULL; }

const eb_peer *eb_neighbour(int rank) { return &peers[eb_near_place(rank)]; }

bool eb_neighbour_has_ended(int rank) { return peers && eb_peer_has_ended(eb_neighbour(rank)); }
