/* On which paths the starts of send requests have travelled: sums, and for each size of requests. */
#ifndef EB_PATHS_H
#define EB_PATHS_H

#include <stdbool.h>

#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/path.h"

/* A start of so many segments; is_first: of its request on this path. One thread at a time. */
void eb_paths_count(const eb_transfer *transfer, eb_path path, int num_segments, bool is_first);
/* Rank 0 of the domain prints the sums of all ranks; collective over it. */
void eb_paths_print(void);

#endif
