/* What holds for the whole process: the settings, the thread level, where the ranks are, locks. */
#ifndef EB_WORLD_H
#define EB_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/clock.h"
#include "partitioned/plan.h"
#include "partitioned/config.h"

/* What both sides of a transfer take for granted, from one rank's arithmetic: another processor's might round otherwise. */
typedef struct {
  int64_t least_planned_bytes; /* smaller transfers exchange no plans */
  unsigned char first_numbers[EB_PLAN_FIRST_PLACES];
} eb_agreement;

typedef struct {
  bool on;       /* partitioned calls are ours: set once in MPI_Init, cleared in MPI_Finalize */
  bool multiple; /* MPI_THREAD_MULTIPLE: only then do threads meet inside the library */
  eb_config settings;
  eb_agreement agreements[2]; /* within a node, and between nodes */
  int rank, size;
  MPI_Group group;   /* of MPI_COMM_WORLD */
  MPI_Comm self;     /* where the never started requests live whose handles the user gets */
  int keyval;        /* finds our view of a communicator */
  MPI_Errhandler errors_return; /* the MPI's MPI_ERRORS_RETURN */
} eb_world_state;

extern eb_world_state eb_world;

/* Live partitioned requests of this process. Every completion call asks this first. */
extern int eb_num_live;

/* Says to other ranks that this one will begin: before the MPI is initialised, if it makes partitioned calls and these come to
 * us. Where is_able is false no rank will begin. */
void eb_world_enlist(bool is_able);
/* Makes the library serve this process, if it was enlisted: after the MPI was initialised; waits for the other ranks that
 * were enlisted, and for no others. */
void eb_world_begin(void);
/* No thread of ours calls the MPI from now on; MPI_Finalize does all else that ends the library's work. */
void eb_world_before_finalize(void);

/* Ends the job, with a sentence, where other ranks would wait for this one for ever. */
_Noreturn void eb_give_up(const char *sentence);
#define EB_NO_MEMORY "no memory is left for partitioned communication, and other ranks wait for this one"

/* Guards communicators, matching, tables and the outbox; nothing where threads cannot meet. May be taken again by
 * the thread that has it. */
void eb_lock(void);
void eb_unlock(void);

#endif
