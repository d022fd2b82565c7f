/* Which part of a machine two processes of a node share: messages between them cost accordingly. Uses no MPI. */
#ifndef EB_PLACEMENT_H
#define EB_PLACEMENT_H

#include <sched.h>

#define EB_PLACEMENT_ROOT "/sys/devices/system/cpu"

/* A word: "core", "cache" or "socket" if all cores that the two may use are in one, "sockets" if each has one of its own, "any" if
 * they may run here or there, "unknown" if the system does not say. root: EB_PLACEMENT_ROOT. */
const char *eb_placement_shared(const char *root, const cpu_set_t *a, const cpu_set_t *b);

#endif
