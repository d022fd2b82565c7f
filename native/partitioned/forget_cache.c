/* Removes what libearlybird has kept for this MPI on this machine: a program for `earlybird exec --forget`. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/earlybird.h"
#include "partitioned/cache/identity.h"
#include "partitioned/cache/store.h"

static int num_removed;

static void print_removed(const char *path) {
  printf("removed %s\n", path);
  num_removed++;
}

int main(void) {
  char mpi[MPI_MAX_LIBRARY_VERSION_STRING], prefix[EB_IDENTITY_MAX_NAME], folder[EB_STORE_MAX_PATH];
  int length;
  if (!eb_store_folder(getenv(EARLYBIRD_ENV_CACHE), folder)) {
    printf("nothing is kept: there is no folder for it\n");
    return 0;
  }
  if (MPI_Get_library_version(mpi, &length) != MPI_SUCCESS) return 1;
  eb_identity_prefix(mpi, prefix);
  if (!eb_store_remove(folder, prefix, print_removed)) {
    fprintf(stderr, "earlybird: what is kept in %s cannot be removed: %s\n", folder, strerror(errno));
    return 1;
  }
  if (num_removed == 0) printf("nothing is kept for this MPI on this machine in %s\n", folder);
  return 0;
}
