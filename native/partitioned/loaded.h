/* What is loaded into this process: does it call partitioned communication, and which MPI is it? */
#ifndef EB_LOADED_H
#define EB_LOADED_H

#include <stdbool.h>

/* Does the program or a library it has loaded refer to MPI_Psend_init or MPI_Precv_init? */
bool eb_loaded_code_is_partitioned(void);

/* Can its functions be called through ours? To be asked before the first of them; says in one sentence why not: an MPI
 * whose handles are of another size, one that cannot be found. One that was loaded after us is made visible to us. */
bool eb_loaded_mpi_can_be_called(void);

/* Is the MPI in this process the one that the library was built for? Says so in one sentence where not, once. */
bool eb_loaded_mpi_is_ours(void);

#endif
