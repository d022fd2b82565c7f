/* Fortran's bindings: libraries of the MPI, or of a tool, that turn a Fortran call into a C call. */
#ifndef EB_BINDINGS_H
#define EB_BINDINGS_H

#include <stdbool.h>

#include "partitioned/symbols.h"

/* Makes the PMPI_ calls of all bindings that are loaded by now calls of ours. What was there when the process started
 * needs no call; to be called where more may have been loaded since. Cheap where nothing was. */
void eb_bindings_redirect(void);

/* Is this an object that implements Fortran's MPI calls, and do they reach us? */
bool eb_bindings_reach_us(const eb_object *object);

#endif
