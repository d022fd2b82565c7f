/* The library's side of a communicator: a shadow to send on, and the order in which requests were made. */
#ifndef EB_COMMUNICATOR_H
#define EB_COMMUNICATOR_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>

#include "partitioned/ids.h"
#include "partitioned/settings.h"
#include "partitioned/tags.h"

struct eb_channel;
struct eb_setup;
struct eb_expected_report;
struct eb_unreleased;

/* A communicator of the user's group that carries nothing but our messages. Shared by a communicator and those
 * that MPI_Comm_idup made of it; freed with the last of them and of their requests. */
typedef struct eb_shadow {
  struct eb_shadow *next; /* all of them, for progress */
  MPI_Comm comm; /* control messages; lanes[0] */
  /* What data is sent on. One, but where EARLYBIRD_LANES asks for more: an MPI that gives communicators contexts of
   * their own (MPICH's VCIs) lets threads send on several at once. */
  MPI_Comm lanes[EB_MAX_LANES];
  int num_lanes;
  int references;
  int size, num_users; /* its ranks; the user's communicators that live on it */
  bool *is_near;       /* [size]: on our node */
  eb_tags tags;
  int tag_ub; /* of the user's tags: the MPI's, whatever the layout pretends */
  eb_ids ids;
  /* Releases and reports that are still to come to this rank. Until they have, the shadow is kept, also when nothing
   * refers to it: freed, its context id may be given to another communicator, which would receive them. */
  int64_t num_owed;
  struct eb_expected_report *reports;               /* their receives are posted */
  struct eb_unreleased **unreleased;                /* [size], or NULL where there were none: to be told to peers */
  struct eb_setup *setups, **last_setup;            /* come, not yet expected; in order */
  struct eb_channel *expecting, **last_expecting;   /* receivers whose setup has not come; in order */
  atomic_int num_expecting;                         /* of them; who waits looks without the lock */
} eb_shadow;

/* How many requests were made for a peer and tag. */
typedef struct {
  uint64_t key; /* peer and tag, plus one; 0 is free */
  uint64_t num;
} eb_order;

typedef struct {
  eb_order *slots;
  uint64_t mask, num_used;
} eb_order_map;

/* What we know of one of the user's communicators. */
typedef struct {
  eb_shadow *shadow;
  MPI_Comm user;             /* MPI_COMM_NULL once the user has freed it */
  MPI_Errhandler errhandler; /* the user's, kept when the communicator is freed */
  int references;
  int rank, size;
  uint64_t context;   /* which of the shadow's communicators: 0 for the one it was made for */
  uint32_t num_idups; /* made of this one so far; the same on every rank, since idup is collective */
  eb_order_map sends, receives;
} eb_view;

/* Gives a communicator that was just made a shadow; collective over it. Without one (an intercommunicator, no
 * communicators or memory left) its partitioned requests are the MPI's own business. */
void eb_communicator_adopt(MPI_Comm user);

/* The same for what MPI_Comm_idup is making of `parent`: it lives on the parent's shadow, because a shadow of its own
 * would need a collective call at a moment when nothing may block. */
void eb_communicator_adopt_idup(MPI_Comm parent, MPI_Comm user);

/* NULL where it has none. */
eb_view *eb_communicator_view(MPI_Comm user);

void eb_view_retain(eb_view *view);
void eb_view_release(eb_view *view);

/* Lets go of one reference, under eb_lock; whoever iterates over things that may let go takes one before. */
void eb_shadow_release(eb_shadow *shadow);

/* The number of requests made before for the peer and tag, counted on; -1 when memory is short. */
int64_t eb_view_next_order(eb_order_map *map, int peer, int tag);

/* Frees the shadows that were only waiting for messages to come. */
void eb_shadows_sweep(void);

/* Every shadow, for those who make progress on all. Under eb_lock. */
eb_shadow *eb_shadows(void);

/* The attribute under which communicators carry their views. Returns an MPI error code. */
int eb_communicator_begin(void);
/* Frees the views of communicators that outlive MPI_Finalize. */
void eb_communicator_end(void);

/* Raises an error of a class, told in one sentence, through the view's communicator's handler (the MPI's default
 * communicator where there is none); returns the code that the call is to return. The handler is the program's code:
 * it is called with no lock of ours held. */
int eb_raise(const eb_view *view, int error_class, const char *sentence);
/* The same for a code that the MPI gave. */
int eb_raise_code(const eb_view *view, int code);

#endif
