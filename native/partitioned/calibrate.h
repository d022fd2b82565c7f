/* Measures what a message costs between two ranks of one node and of two, where no profile told it. */
#ifndef EB_CALIBRATE_H
#define EB_CALIBRATE_H

#include <mpi.h>

#include "partitioned/cost.h"

/* Fills in the costs whose num is 0, alike on every rank; some tens of milliseconds; collective over MPI_COMM_WORLD on
 * `comm`, which must carry nothing else. A cost that no pair of ranks can show stays empty. */
void eb_calibrate(MPI_Comm comm, const int *node_of_rank, int rank, int size, eb_cost *intra_node, eb_cost *inter_node);

#endif
