/* The name of this node. */
#ifndef EB_HOST_H
#define EB_HOST_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A batch system may know a node by another name than the node has itself, and takes no other: what it calls the node is in the
 * variable that EARLYBIRD_NODE_NAME_IN names, if whoever started this process has set that. */
static inline void eb_host_name(char *name, size_t bytes) {
  const char *const variable = getenv("EARLYBIRD_NODE_NAME_IN");
  const char *const stated = variable ? getenv(variable) : NULL;
  name[0] = '\0';
  if (stated && *stated) snprintf(name, bytes, "%s", stated);
  else (void)gethostname(name, bytes - 1);
  name[bytes - 1] = '\0';
}

#endif
