/* Inspects the objects loaded into this process: the MPI, code that uses partitioned communication, and tools. */
#ifndef EB_LOADED_H
#define EB_LOADED_H

#include <stdbool.h>

/* Does the program or a library of it refer to MPI_Psend_init or MPI_Precv_init, from C or Fortran? Names that
 * code looks up with dlsym are not detected. */
bool eb_loaded_code_is_partitioned(void);

/* Can the library call the MPI's functions? Call this before the first of them. Prints the reason if not: an MPI whose handles
 * have another size, or no MPI. Makes an MPI visible that was loaded after the library. */
bool eb_loaded_mpi_can_be_called(void);

/* Has the MPI all functions that partitioned communication needs? Prints what is missing. The name and version of the MPI are
 * irrelevant: its ABI must be the one that the library was compiled for. */
bool eb_loaded_mpi_is_supported(void);

/* The first function of the library that calls in this process do not reach, because a preceding object defines it: a tool
 * that was loaded first, or one that is part of the program. *by is the path of that object. NULL: none. */
const char *eb_loaded_hidden_call(const char **by);

/* A function of the MPI that completes or starts requests, for which an object refers to the MPI's own under a name that
 * the library does not define (PMPI_Wait, mpi_wait_f08_). Partitioned requests would complete there without data. Wrappers of
 * a tool that is loaded later do not count: they are not called. *by is the path of the object. NULL: there is none. */
const char *eb_loaded_bypass(const char **by);

/* Does the program use partitioned communication, and does the library serve it? Call this once, before MPI starts. If not,
 * rank 0 prints the reason, except with EARLYBIRD_OFF. Unknown if memory was short. */
typedef enum { EB_INACTIVE, EB_ACTIVE, EB_SERVICE_UNKNOWN } eb_service;
eb_service eb_loaded_service(void);

/* For a partitioned call that goes to the MPI although eb_loaded_service was never called: prints once that a preceding object
 * defines MPI_Init. */
void eb_loaded_explain_absence(void);

#endif
