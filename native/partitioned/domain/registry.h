/* Publishes through the process manager that this rank has the library, and looks this up for other ranks.
 *
 * What a rank publishes before the MPI starts can be read by every rank once the MPI has started, because every start
 * ends with the process manager's own exchange. No rank waits for another one, so a rank without the library cannot
 * disturb it.
 */
#ifndef EB_REGISTRY_H
#define EB_REGISTRY_H

#include <stdbool.h>

/* Before the MPI is initialised. */
void eb_registry_publish(void);

/* Is there a store in which ranks of this job can publish? The same answer on all of its ranks, also on those that did not
 * publish. After the MPI has been initialised. */
bool eb_registry_is_there(void);
/* Has this rank published? */
bool eb_registry_has_published(void);
/* Can ranks read what this rank, of this number in MPI_COMM_WORLD, has published? Not where Hydra keeps it until an exchange, which an
 * MPI of another release does not begin. A rank whose value others can read is one that reads it. After the MPI has been initialised. */
bool eb_registry_is_readable(int own_rank);

/* Has this rank of MPI_COMM_WORLD published the same value as this rank? Incompatible libraries publish different
 * values. After the MPI has been initialised. */
bool eb_registry_has(int rank);

#endif
