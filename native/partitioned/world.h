/* What holds for the whole process: the settings, the thread level, where the ranks are, locks. */
#ifndef EB_WORLD_H
#define EB_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/clock.h"
#include "partitioned/settings.h"

typedef struct {
  bool on;       /* partitioned calls are ours: set once in MPI_Init, cleared in MPI_Finalize */
  bool multiple; /* MPI_THREAD_MULTIPLE: only then do threads meet inside the library */
  eb_settings settings;
  int rank, size;
  int *node_of_rank; /* [size]: the lowest rank on the same host */
  MPI_Comm self;     /* where the never started requests live whose handles the user gets */
  int keyval;        /* finds our view of a communicator */
} eb_world_state;

extern eb_world_state eb_world;

/* Live partitioned requests of this process. Every completion call asks this first. */
extern int eb_num_live;

/* Makes the library serve this process: collective over MPI_COMM_WORLD, called by MPI_Init's wrapper alone. */
void eb_world_begin(void);
/* Writes what was asked for and frees everything: collective, before PMPI_Finalize. */
void eb_world_end(void);

/* Guards communicators, matching, tables and the outbox; nothing where threads cannot meet. May be taken again by
 * the thread that has it. */
void eb_lock(void);
void eb_unlock(void);

#endif
