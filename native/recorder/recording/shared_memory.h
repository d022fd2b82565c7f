/* Which shared memory of its node a rank has, for whoever removes what a command that failed has left. */
#ifndef EB_RECORDED_SHARED_MEMORY_H
#define EB_RECORDED_SHARED_MEMORY_H

/* Append the paths of what this process has mapped below /dev/shm, one to a line, to the file that EARLYBIRD_RECORD_SHARED names, if
 * that is there: `earlybird record` and `exec --stuck` make it on their node. A rank may end before these look at it. */
void eb_shared_memory_report(void);

#endif
