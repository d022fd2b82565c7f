/* The library's view of a communicator: its identity between ranks, and the order in which requests were created. */
#ifndef EB_COMMUNICATOR_H
#define EB_COMMUNICATOR_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of requests created for a peer and tag. */
typedef struct {
  uint64_t key; /* peer and tag, plus one; 0 is free */
  uint64_t num;
} eb_order;

typedef struct {
  eb_order *slots;
  uint64_t mask, num_used;
} eb_order_map;

#define EB_IDENTITY_WORLD UINT64_C(0) /* of MPI_COMM_WORLD */

/* What we know of one of the user's communicators. */
typedef struct {
  MPI_Comm user;             /* MPI_COMM_NULL once the user has freed it */
  MPI_Errhandler errhandler; /* the user's, kept when the communicator is freed */
  int references;
  int rank;              /* ours in it */
  int num_peers;         /* ranks of the communicator, or of an intercommunicator's remote group */
  uint64_t identity;     /* the same on all its ranks, and unique among their communicators */
  int number;            /* for canonical tags, the same on all ranks: 0: MPI_COMM_WORLD, k: the k-th derived from it; else -1 */
  uint64_t num_children; /* communicators derived from it; the same on all its ranks, which create them collectively */
  eb_order_map sends, receives;
  eb_order_map groups; /* communicators that MPI_Comm_create_group derived from it, by their members */
} eb_view;

/* What constructors make is named here, each rank by itself: constructors are collective, so all members agree on how many
 * were called before. A communicator with ranks of another world (spawned or connected) or of sessions remains unknown: its
 * partitioned requests are the MPI's own business. Nothing is sent, so a member without the library is not waited for. */

/* For a constructor that all ranks of the parent call: all except the following. */
void eb_communicator_made(MPI_Comm parent, MPI_Comm made);
/* For MPI_Comm_dup and its variants; the result of MPI_Comm_idup may not be used yet, and is not. */
void eb_communicator_duplicated(MPI_Comm parent, MPI_Comm made);
/* For MPI_Comm_create_group, which only the group's ranks call. */
void eb_communicator_made_of_group(MPI_Comm parent, MPI_Group group, int tag, MPI_Comm made);
/* For MPI_Intercomm_create. */
void eb_communicator_joined(MPI_Comm local_comm, int tag, MPI_Comm made);
/* For a call with groups of a session. Communicators derived from it belong to the session, too, and remain unknown: they may
 * be used after MPI_Finalize, when the library has shut down. */
void eb_communicator_made_of_session(MPI_Comm made);

/* NULL if it has none. */
eb_view *eb_communicator_view(MPI_Comm user);

void eb_view_retain(eb_view *view);
void eb_view_release(eb_view *view);

/* The rank in the domain of a rank of the communicator (of the remote group of an intercommunicator); -1 for one without
 * the library, or if it cannot be determined. */
int eb_view_domain_rank(const eb_view *view, int peer);

/* The number of requests created before for the peer and tag, then incremented; -1 when memory is short. */
int64_t eb_view_next_order(eb_order_map *map, int peer, int tag);
/* The creation of the last one failed. */
void eb_view_return_order(eb_order_map *map, int peer, int tag);

/* The attribute under which communicators carry their views, and the views of the predefined ones. Return MPI error
 * codes; local. */
int eb_communicator_begin(void);
int eb_communicator_adopt_predefined(void);
/* Frees the views of communicators that outlive MPI_Finalize. */
void eb_communicator_end(void);

/* Raises an error of a class, with a message, through the view's communicator's handler (the MPI's default
 * communicator if there is none); returns the code that the MPI call must return. The handler is the program's code:
 * it is called without any lock of the library held. */
int eb_raise(const eb_view *view, int error_class, const char *sentence);
/* The same for a code that the MPI returned. */
int eb_raise_code(const eb_view *view, int code);

#endif
