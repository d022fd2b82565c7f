/* The beginning and the end of the library in a process. */
#ifndef EB_LIBRARY_H
#define EB_LIBRARY_H

#include <stdbool.h>

/* Publishes that this rank participates: before the MPI is initialised, if the program makes partitioned calls that reach the
 * library. If is_able is false, no rank uses the library. */
void eb_library_enlist(bool is_able);
/* Starts the library in this process, if it was enlisted: after the MPI is initialised. Waits only for the other enlisted
 * ranks. */
void eb_library_begin(void);
/* From now on no thread of the library calls the MPI; MPI_Finalize does the rest of the shutdown. */
void eb_library_before_finalize(void);

#endif
