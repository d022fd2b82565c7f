/* Identifies the MPI: the kind of its handles, missing functions, path. */
#ifndef EB_IDENTITY_H
#define EB_IDENTITY_H

#include <stdbool.h>

#include "interpose/objects/symbols.h"

/* Can the library call the MPI's functions? See eb_loaded_mpi_can_be_called. */
bool eb_identity_can_be_called(const eb_objects *objects);

/* Has the MPI every function that the object `self` of the library calls? If not, and with `says`, prints the reason. */
bool eb_identity_is_complete(const eb_object *self, bool says);

/* The path of the MPI's library; empty if it is part of the program or there is none. */
const char *eb_identity_mpi_path(const eb_objects *objects);

/* Are two libraries in one folder, with links resolved? Folders such as `release` below one of them do not count. */
bool eb_identity_shares_folder(const char *path, const char *other);

/* Do the functions of the MPI's mpif.h complete requests without calling C functions that could be ours? */
bool eb_identity_fortran_passes_by(void);

#endif
