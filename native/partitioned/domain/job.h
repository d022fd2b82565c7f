/* Determines which ranks of the job have the library, without waiting for a rank without it. */
#ifndef EB_JOB_H
#define EB_JOB_H

#include <stdbool.h>
#include <stdint.h>

/* A bit for each rank of MPI_COMM_WORLD. */
typedef struct {
  int num_ranks, num_members;
  uint64_t *words;
} eb_members;

/* Publishes that this rank has the library and participates. Call before the MPI is initialised, after all checks that could
 * disable the library in this process. */
void eb_job_enlist(void);

/* Does EARLYBIRD_WHOLE_JOB state that every rank of the job has the library? Used if no registry reports it. */
bool eb_job_is_whole(void);

/* Fills in the ranks that have enlisted, the same on each of them. To be called by every rank that has the library, directly
 * after the MPI's own initialisation: until then the program cannot receive, so messages between these ranks on
 * MPI_COMM_WORLD are not seen by it. Blocks until all ranks that have enlisted have called it; returns false at once on one
 * that has not, unless EARLYBIRD_WHOLE_JOB states that every rank of the job has the library: then all of them meet.
 *
 * False, and members unchanged: the library must be disabled on every rank, because a rank reported that it cannot
 * begin (is_able) or because the ranks with the library cannot be determined. *reason is then the message to print,
 * if this rank must print it, otherwise NULL. */
bool eb_job_meet(bool is_able, eb_members *members, const char **reason);

static inline bool eb_members_has(const eb_members *members, int rank) { return members->words[rank / 64] >> rank % 64 & 1; }

#endif
