/* Measures what a message costs between two ranks of one node and of two, where no profile told it. */
#ifndef EB_CALIBRATE_H
#define EB_CALIBRATE_H

#include <mpi.h>

#include "partitioned/cost.h"

/* Fills in the costs whose num is 0, alike on every rank; some tens of milliseconds; collective over the domain, which must
 * carry nothing else meanwhile. A cost that no pair of ranks can show stays empty. */
void eb_calibrate(eb_cost *intra_node, eb_cost *inter_node);

#endif
