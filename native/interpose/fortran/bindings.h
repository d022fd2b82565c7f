/* Fortran's bindings: libraries of the MPI, or of a tool, that turn a Fortran call into a C call. */
#ifndef EB_BINDINGS_H
#define EB_BINDINGS_H

#include <link.h>
#include <stdbool.h>

/* Makes the PMPI_ calls of the bindings that are loaded by now calls of ours. Done for what is loaded at the start of the
 * process by itself; to be asked again where more may have been loaded since. */
void eb_bindings_redirect(void);

/* Does the object implement Fortran's MPI calls? What it refers to says nothing of the program then. */
bool eb_bindings_are(const struct dl_phdr_info *info);

/* Is the symbol one by which C or Fortran makes a partitioned request, in any binding and any spelling of a compiler? */
bool eb_bindings_name_is_partitioned(const char *name);

#endif
