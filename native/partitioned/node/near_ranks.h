/* The ranks of this node that have the library, by their place among them: what a process keeps of each has so many places, and not those
 * of all ranks of the job. Uses no MPI. */
#ifndef EB_NEAR_RANKS_H
#define EB_NEAR_RANKS_H

#include <stdbool.h>

/* Copies them: ranks of the domain, in ascending order. False when memory is short. */
bool eb_near_begin(const int *ranks, int num);
void eb_near_end(void);

int eb_near_num(void);
/* From 0, of a rank of the domain on this node. */
int eb_near_place(int rank);

#endif
