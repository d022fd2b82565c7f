/* Which ranks of the job have the library, found out so that a rank without it is never waited for. */
#ifndef EB_JOB_H
#define EB_JOB_H

#include <stdbool.h>
#include <stdint.h>

/* A bit for each rank of MPI_COMM_WORLD. */
typedef struct {
  int num_ranks, num_members;
  uint64_t *words;
} eb_members;

/* Says that this rank has the library and takes part. Before the MPI is initialised; what could still keep the library from
 * serving this process must be known by then. */
void eb_job_enlist(void);

/* Has a person said, by EARLYBIRD_WHOLE_JOB, that every rank of the job has the library? It counts where no registry tells. */
bool eb_job_is_whole(void);

/* Fills in the ranks that have enlisted, the same on each of them. To be called by every rank that has the library, directly
 * after the MPI's own initialisation: until then the program cannot receive, so messages between these ranks on
 * MPI_COMM_WORLD are not seen by it. Blocks until all ranks that have enlisted have called it; returns false at once on one
 * that has not, unless a person has said that every rank of the job has the library: then all of them meet.
 *
 * False, and members unchanged: the library must stand back, on every rank, because a rank said that it cannot
 * begin (is_able) or because nobody can know which ranks have the library. *reason is then the sentence for a person,
 * where this rank is the one to print it, else NULL. */
bool eb_job_meet(bool is_able, eb_members *members, const char **reason);

static inline bool eb_members_has(const eb_members *members, int rank) { return members->words[rank / 64] >> rank % 64 & 1; }

#endif
