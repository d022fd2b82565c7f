/* The processes of this node that have the library, and whether all of them reach one another's memory. */
#ifndef EB_NEIGHBOURS_H
#define EB_NEIGHBOURS_H

#include <mpi.h>
#include <stdbool.h>

#include "partitioned/node/peer_memory.h"

/* Tries every pair of ranks; collective over the ranks of a node, which near_ranks.h knows. is_asked: the user has asked for it, so a
 * rank that cannot print a message. */
void eb_neighbours_begin(MPI_Comm node, bool is_asked);
void eb_neighbours_end(void);

/* Do all ranks of this node reach one another's memory? */
bool eb_neighbours_are_reached(void);
/* Of a rank of the domain on this node, if they do. */
const eb_peer *eb_neighbour(int rank);
/* Has the process of a rank of the domain ended? False where that is not known. */
bool eb_neighbour_has_ended(int rank);

#endif
