/* Exchanges the numbers of the processes, and tries to reach each. */
#include "partitioned/node/neighbours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioned/process/world.h"

static eb_peer *peers; /* [ranks of the domain] NULL: they do not reach one another */

static int try_all(const eb_peer *of_node, int num_near) {
  int error = 0;
  for (int k = 0; k < num_near && error == 0; k++) error = eb_peer_try(&of_node[k]);
  return error;
}

void eb_neighbours_begin(MPI_Comm node, const int *ranks, int num_ranks, bool is_asked) {
  int num_near, all = 0;
  PMPI_Comm_size(node, &num_near);
  if (num_near == 1) return;
  const eb_peer self = eb_peer_self();
  eb_peer *const of_node = malloc((size_t)num_near * sizeof *of_node);
  peers = calloc((size_t)num_ranks, sizeof *peers);
  int able = of_node && peers;
  /* A rank without memory for the answers would leave the others alone in the exchange. */
  if (PMPI_Allreduce(&able, &all, 1, MPI_INT, MPI_MIN, node) == MPI_SUCCESS && all) {
    PMPI_Allgather(&self, sizeof self, MPI_BYTE, of_node, sizeof self, MPI_BYTE, node);
    const int error = try_all(of_node, num_near);
    if (error && is_asked)
      fprintf(stderr,
              "earlybird: rank %d: the ranks of this node use messages, because they cannot reach each other's memory: %s\n",
              eb_world.rank, strerror(error));
    able = error == 0;
    /* Also so that no rank goes on, and ends, while others try it. */
    if (PMPI_Allreduce(&able, &all, 1, MPI_INT, MPI_MIN, node) != MPI_SUCCESS) all = 0;
    for (int k = 0; k < num_near; k++) peers[ranks[k]] = of_node[k];
  }
  if (!all) eb_neighbours_end();
  free(of_node);
}

void eb_neighbours_end(void) {
  free(peers);
  peers = NULL;
}

bool eb_neighbours_are_reached(void) { return peers != NULL; }

const eb_peer *eb_neighbour(int rank) { return &peers[rank]; }

bool eb_neighbour_has_ended(int rank) { return peers && eb_peer_has_ended(&peers[rank]); }
