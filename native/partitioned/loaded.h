/* What is loaded into this process: which MPI, code that uses partitioned communication, and tools around us. */
#ifndef EB_LOADED_H
#define EB_LOADED_H

#include <stdbool.h>

/* Does the program or a library of it refer to MPI_Psend_init or MPI_Precv_init, from C or Fortran? A name that code looks
 * up with dlsym cannot be seen. */
bool eb_loaded_code_is_partitioned(void);

/* Can the MPI's functions be called through ours? To be asked before the first of them; says in one sentence why not: an
 * MPI whose handles have another size, or one that cannot be found. An MPI that was loaded after us is made visible. */
bool eb_loaded_mpi_can_be_called(void);

/* Has the MPI all that partitioned communication needs? Says in one sentence what is missing. Its name and version do not
 * matter: what has the ABI that the library was compiled for is served. */
bool eb_loaded_mpi_is_ours(void);

/* The first function of ours that calls in this process do not reach, because another object defines it before us: a
 * tool that was loaded first, or one that is part of the program. *by is the path of that object. NULL: all are ours. */
const char *eb_loaded_hidden_call(const char **by);

/* A function of the MPI that completes or starts requests, for which an object refers to the MPI's own under a name that
 * we do not define (PMPI_Wait, mpi_wait_f08_). Requests of ours would complete there without data. The wrappers of a tool
 * that is loaded after us are not meant: nothing calls them. *by is the path of the object. NULL: there is none. */
const char *eb_loaded_bypass(const char **by);

/* Does the program use partitioned communication, and is it ours in this process? To be asked once, before MPI starts. Where
 * it is not ours, rank 0 says why in one sentence. Not with EARLYBIRD_OFF. Unknown where memory was short for the answer. */
typedef enum { EB_SERVES_NOT, EB_SERVES, EB_SERVICE_UNKNOWN } eb_service;
eb_service eb_loaded_service(void);

/* For a partitioned call that goes to the MPI though eb_loaded_service was never asked: says, once, that the program's
 * MPI_Init is not ours. */
void eb_loaded_explain_absence(void);

#endif
