/* Measures the cost of a message between two ranks of one node and of two nodes. */
#ifndef EB_CALIBRATE_H
#define EB_CALIBRATE_H

#include <mpi.h>
#include <stdbool.h>

#include "partitioned/segmentation/cost.h"
#include "partitioned/segmentation/path.h"

typedef struct {
  eb_cost cost;   /* num 0: no pair of ranks could measure it in the time, or they have no such path */
  bool is_steady; /* two measurements of the short messages agreed */
} eb_calibration;

/* Two ranks that measure, of one node or of two; the same on every rank. */
typedef struct {
  int first, second;
} eb_pair;

/* False where there are none. Collective over the domain. */
bool eb_calibrate_pair(bool is_inter_node, eb_pair *pair);

/* Fills in the same values on every rank. Takes about 0.3 s at most if it is thorough, as for costs that later runs use, and else
 * some tens of milliseconds, also where ranks wait for a core. Collective over the domain, which must carry no other message meanwhile. */
void eb_calibrate(const eb_pair *pair, eb_path path, bool is_thorough, eb_calibration *calibration);

#endif
