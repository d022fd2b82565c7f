/* The domain: the ranks of the job that have the library, and the communicators on which they communicate.
 *
 * It is created once, for all communicators of the program. Only messages of the library travel on it, so no receive or probe of
 * the program ever matches one. Messages contain the identity of the program's communicator.
 */
#ifndef EB_DOMAIN_H
#define EB_DOMAIN_H

#include <mpi.h>
#include <stdbool.h>

#include "partitioned/domain/job.h"
#include "partitioned/process/config.h"
#include "partitioned/segmentation/segment.h"
#include "partitioned/tags/tags.h"

typedef struct {
  MPI_Comm comm; /* control messages; lanes[0] */
  /* What data is sent on. One, but where EARLYBIRD_LANES asks for more: an MPI that gives communicators contexts of
   * their own (MPICH's VCIs) lets threads send on several at once. One, too, if no rank has MPI_THREAD_MULTIPLE. */
  MPI_Comm lanes[EB_MAX_LANES];
  int num_lanes;
  int rank, size;
  int *rank_of_world;  /* [ranks of MPI_COMM_WORLD] -1: without the library; NULL: every rank has it, in the same order */
  bool *is_near;       /* [size]: on this node */
  int far_rank;        /* the lowest rank on another node than rank 0, the same on every rank; size: none */
  eb_tags tags;
  int tag_ub; /* of the program's tags: the MPI's value, also if the layout uses a smaller one */
} eb_domain_state;

extern eb_domain_state eb_domain;

/* Creates the communicators; collective over the members. False on all of them if one fails. The configuration must have
 * been read on the lowest member; afterwards every member has it. */
bool eb_domain_begin(const eb_members *members, eb_config *config);

/* Leaves the communicators to MPI_Finalize: they may have unreceived messages, and MPICH ends a program that frees a
 * communicator with unmatched messages. */
void eb_domain_end(void);

/* The lane of a segment of a request whose first lane is `first`. */
static inline int eb_domain_lane(const eb_segments *segments, int segment, int first) {
  return (first + eb_segments_lane(segments, segment, eb_domain.num_lanes)) % eb_domain.num_lanes;
}

/* The rank in the domain of a rank of MPI_COMM_WORLD; -1 for one without the library. */
static inline int eb_domain_rank(int world_rank) {
  return eb_domain.rank_of_world ? eb_domain.rank_of_world[world_rank] : world_rank;
}

#endif
