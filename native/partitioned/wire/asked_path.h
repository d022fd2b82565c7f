/* The path that EARLYBIRD_NODE_PATH asks for, and what is said of requests that cannot take it. */
#ifndef EB_ASKED_PATH_H
#define EB_ASKED_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "partitioned/domain/transfer.h"
#include "partitioned/segmentation/path.h"

/* EB_PATH_MESSAGE: none is asked for. */
eb_path eb_asked_path(void);
/* As it is called. */
const char *eb_path_name(eb_path path);

/* A send request travels as messages although its ranks are on one node: counts it, and prints the reason for the first one of this
 * process. Call it once for a request. is_framed: it has no tags; num_segments: those that its next starts have. */
void eb_asked_path_refused(const eb_transfer *transfer, bool is_framed, int num_segments);
/* So many requests of this process. */
int64_t eb_asked_path_num_refused(void);

#endif
