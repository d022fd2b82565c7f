/* State of the whole process: the configuration, the thread level, this rank, the lock. */
#ifndef EB_WORLD_H
#define EB_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "partitioned/process/config.h"
#include "partitioned/segmentation/planner.h"

/* Values that both sides of a transfer must share. One rank computes them, because other processors may round differently. */
typedef struct {
  int64_t least_adapted_bytes; /* smaller transfers are adapted from a later start on */
  unsigned char first_numbers[EB_PLANNER_FIRST_PLACES];
} eb_agreement;

typedef struct {
  bool on; /* the library serves partitioned calls: set once in MPI_Init, cleared in MPI_Finalize */
  bool multiple; /* MPI_THREAD_MULTIPLE: only then are threads concurrent inside the library */
  eb_config config;
  eb_agreement agreements[2]; /* within a node, and between nodes */
  bool keeps_requests; /* messages are persistent requests: see wire.c */
  bool is_crowded;     /* this node has more ranks than processors */
  int rank;
  MPI_Group group; /* of MPI_COMM_WORLD */
  MPI_Comm self; /* for the never started requests whose handles the user gets */
  int keyval; /* of the view of a communicator */
  MPI_Errhandler errors_return; /* the MPI's MPI_ERRORS_RETURN */
} eb_world_state;

extern eb_world_state eb_world;

/* Is the MPI an Open MPI? Behind the standard's ABI the loaded program shows it; may be asked before MPI_Init. */
bool eb_is_open_mpi(void);

/* Ends the job with a message if other ranks would wait for this rank indefinitely. */
_Noreturn void eb_abort(const char *sentence);
/* The same where the user's configuration is wrong. */
_Noreturn void eb_refuse_config(const char *sentence);
#define EB_NO_MEMORY "out of memory for partitioned communication while other ranks wait for this rank"

/* Guards communicators, matching, tables and the send queue; no effect without concurrent threads. Recursive. */
void eb_lock_begin(void);
void eb_lock(void);
void eb_unlock(void);

#endif
