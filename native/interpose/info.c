/* MPI_Info_set: whether the program uses info keys of the library. */
#include "interpose/interpose.h"

EB_EXPORT int MPI_Info_set(MPI_Info info, const char *key, const char *value) {
  eb_config_note_key(key);
  return PMPI_Info_set(info, key, value);
}
