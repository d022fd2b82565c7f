/* Fortran's bindings: libraries of the MPI, or of a tool, that turn a Fortran call into a C call. */
#ifndef EB_BINDINGS_H
#define EB_BINDINGS_H

#include <stdbool.h>

#include "interpose/objects/symbols.h"

/* Makes the PMPI_ calls of all bindings that are loaded by now calls of ours. To be called when the process starts, because
 * MPI_INIT may be one of them, and where more may have been loaded since. Cheap where nothing was. */
void eb_bindings_redirect(void);

/* Does the object implement Fortran's MPI calls? What it refers to says nothing of the program. */
bool eb_bindings_are(const eb_object *object);

/* And do they reach us? False for NULL. */
bool eb_bindings_reach_us(const eb_object *object);

#endif
