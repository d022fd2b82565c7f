/* Tools whose calls of the MPI precede the recorder's: the program calls theirs, and they call the MPI's own. */
#ifndef EB_RECORDED_HIDDEN_H
#define EB_RECORDED_HIDDEN_H

#include <stdbool.h>

/* Prints the first call of the program that does not reach the recorder, and leaves a file for `earlybird record`; once for
 * all ranks of a folder. `is_mpi`: the process is known to have initialised the MPI, so that what it calls need not be looked
 * for in what has been loaded. */
void eb_hidden_report(bool is_mpi);

#endif
