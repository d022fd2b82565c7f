/* The domain: the ranks of the job that have the library, and the communicators on which they talk to one another.
 *
 * Made once, for the ranks of all of the program's communicators: nothing but our messages travels on it, so no receive or
 * probe of the program ever sees one. What belongs to which of the program's communicators, messages say.
 */
#ifndef EB_DOMAIN_H
#define EB_DOMAIN_H

#include <mpi.h>
#include <stdbool.h>

#include "partitioned/ids.h"
#include "partitioned/job.h"
#include "partitioned/config.h"
#include "partitioned/tags.h"

typedef struct {
  MPI_Comm comm; /* control messages; lanes[0] */
  /* What data is sent on. One, but where EARLYBIRD_LANES asks for more: an MPI that gives communicators contexts of
   * their own (MPICH's VCIs) lets threads send on several at once. */
  MPI_Comm lanes[EB_MAX_LANES];
  int num_lanes;
  int rank, size;
  int num_world_ranks;
  int *rank_of_world;  /* [num_world_ranks] -1: without the library; NULL: every rank has it, in the same order */
  bool *is_near;       /* [size]: on our node */
  int far_rank;        /* the lowest rank on another node than rank 0, alike on every rank; size: there is none */
  eb_tags tags;
  int tag_ub; /* of the program's tags: the MPI's, whatever the layout pretends */
  eb_ids ids; /* of this rank's senders */
} eb_domain_state;

extern eb_domain_state eb_domain;

/* Makes the communicators; collective over the members. False, on all of them, when one cannot. The settings must have
 * been read on the lowest member; afterwards every member has them. */
bool eb_domain_begin(const eb_members *members, eb_config *settings);

/* The communicators are left to MPI_Finalize: what a program never received may still be in them, and MPICH ends a
 * program that frees a communicator with unmatched messages. */
void eb_domain_end(void);

/* The rank in the domain of a rank of MPI_COMM_WORLD; -1 for one without the library. */
static inline int eb_domain_rank(int world_rank) {
  return eb_domain.rank_of_world ? eb_domain.rank_of_world[world_rank] : world_rank;
}

#endif
