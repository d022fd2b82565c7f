/* Measures the cost of a message between two ranks of one node and of two nodes, unless a profile provides it. */
#ifndef EB_CALIBRATE_H
#define EB_CALIBRATE_H

#include <mpi.h>

#include "partitioned/segmentation/cost.h"

/* Fills in the costs whose num is 0, with the same values on every rank. Takes some tens of milliseconds. Collective over the
 * domain, which must carry no other message meanwhile. A cost that no pair of ranks can measure stays empty. */
void eb_calibrate(eb_cost *intra_node, eb_cost *inter_node);

#endif
