/* Which MPI is it: the kind of its handles, what it lacks, where it lies. */
#ifndef EB_IDENTITY_H
#define EB_IDENTITY_H

#include <stdbool.h>

#include "partitioned/symbols.h"

/* Can the MPI's functions be called through ours? See eb_loaded_mpi_can_be_called. */
bool eb_identity_can_be_called(const eb_objects *objects);

/* Has the MPI every function that the object `self`, ours, calls for itself? Where it has not, and with `says`, prints
 * why in one sentence. */
bool eb_identity_is_complete(const eb_object *self, bool says);

/* The path of the MPI's library; empty where it is a part of the program or there is none. */
const char *eb_identity_mpi_path(const eb_objects *objects);

/* Do two libraries lie in one folder, links resolved? Folders such as `release` below one of them do not count. */
bool eb_identity_shares_folder(const char *path, const char *other);

/* Do the functions of the MPI's mpif.h complete requests without calling C functions that could be ours? */
bool eb_identity_fortran_passes_by(void);

#endif
