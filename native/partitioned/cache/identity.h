/* What costs of messages depend on: the machine, the MPI and its settings, as text. Uses no MPI. */
#ifndef EB_IDENTITY_H
#define EB_IDENTITY_H

#include <stdbool.h>

#include "partitioned/cache/cache_file.h"

/* What the caller knows about this run. */
typedef struct {
  const char *mpi; /* the text of MPI_Get_library_version */
  bool is_multiple, has_progress_thread;
  bool is_crowded; /* more ranks on this node than cores */
  int num_lanes;
  int node_path; /* what the configuration asks for */
  const char *shared; /* by the pair of ranks that measures costs within nodes, as eb_placement_shared says it; or "none" */
} eb_run;

enum { EB_IDENTITY_MAX_NAME = 128 };

typedef struct {
  char text[EB_CACHE_MAX_IDENTITY]; /* lines of the file */
  char name[EB_IDENTITY_MAX_NAME];  /* of the file */
} eb_identity;

void eb_identity_of(const eb_run *run, eb_identity *identity);

/* How the names of all files of this machine and MPI begin. */
void eb_identity_prefix(const char *mpi, char *prefix);

/* The number of cores that this process may use. */
int eb_identity_num_cores(void);

#endif
