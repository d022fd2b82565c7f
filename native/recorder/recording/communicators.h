/* Communicators of the program: their members as ranks of MPI_COMM_WORLD, and their topology. */
#ifndef EB_RECORDED_COMMUNICATORS_H
#define EB_RECORDED_COMMUNICATORS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "recorder/recording/awaited.h"

/* Ranks of a group in MPI_COMM_WORLD: first + stride * rank, or listed where that does not hold. */
typedef struct {
  int num, first, stride;
  int *listed; /* NULL: by the formula */
} eb_members;

typedef struct eb_communicator {
  struct eb_communicator *next; /* of all */
  uint32_t number;              /* from 1; 0 in an entry: the call names no communicator */
  uint64_t identity;            /* see identity.h; 0: not known, or of several */
  int rank;
  bool is_inter, is_freed, is_written;
  eb_members local, peers; /* peers: of an inter-communicator the remote group, else the local one */
  const char *topology;    /* "cart", "graph", "dist_graph" or "none" */
  int num_dims, *dims, *periods;
  int num_sources, *sources, num_destinations, *destinations; /* neighbours in the order of the collectives, as world ranks */
  const char *name;                 /* the latest; a former one stays in memory, because it may be being written */
  char first_name[MPI_MAX_OBJECT_NAME]; /* when it was first used */
  eb_awaited_communicator *awaited; /* its place in the page */
  uint32_t num_objects[EB_NUM_OBJECTS]; /* created over it */
} eb_communicator;

/* Before all else, when the MPI has been initialised. False: no communicator can be translated. */
bool eb_communicators_begin(void);

/* The communicator of a handle; NULL: unknown, because memory is short or the MPI has an error. Remembered by each thread. */
eb_communicator *eb_communicator_of(MPI_Comm comm);

/* A place in the page for what was created over the communicator. NULL: there are too many. */
eb_awaited_communicator *eb_communicator_object(eb_communicator *communicator, eb_object_kind kind);
/* It has been freed; NULL: none. */
void eb_communicator_object_free(eb_awaited_communicator *object, eb_object_kind kind);

/* The ranks of a group in MPI_COMM_WORLD, allocated; NULL: unknown. */
int *eb_group_ranks(MPI_Group group, int *count);

/* The program has named the communicator. */
void eb_communicator_named(MPI_Comm comm, const char *name);

/* One with the members of the group, whether or not the program has freed it. NULL as above. */
eb_communicator *eb_communicator_of_group(MPI_Group group);

/* The one with this number; NULL: none. */
eb_communicator *eb_communicator_of_number(uint32_t number);

/* Increases when a communicator is freed: what threads remember of handles is void then. */
EB_OWN extern uint32_t eb_communicators_generation;

/* All of them, the newest first. */
eb_communicator *eb_communicators_first(void);

static inline int eb_members_world_rank(const eb_members *members, int rank) {
  if ((unsigned)rank >= (unsigned)members->num) return -4; /* EB_PEER_OUTSIDE */
  return members->listed ? members->listed[rank] : members->first + members->stride * rank;
}

#endif
