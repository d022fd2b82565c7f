/* Starts the agent of this node, which copies the pages of its ranks to the recording's folder. */
#ifndef EB_AGENT_H
#define EB_AGENT_H

#include <stdint.h>

/* Of pages in shared memory: the user's number; the hash of the recording's folder follows. */
#define EB_SHARED_FOLDER "/dev/shm/earlybird-%u-"
enum { EB_AGENT_LOCK = 3 }; /* the agent's descriptor of the folder of the pages */

/* The first rank of a node that calls it starts the agent. `folder`: of the pages; `path`: of the file that the agent writes;
 * `num_nodes`: how many have one. */
void eb_agent_start(const char *folder, const char *path, uint64_t num_nodes);

#endif
