/* Earlybird's partitioned communication: declarations that an older MPI does not have.
 *
 * Programs use the library through MPI's own calls. Include this header instead of <mpi.h> if the MPI has no partitioned
 * communication (MPI 3.1), or to use the info keys below; the library also works with programs that include only <mpi.h>.
 * Link with -learlybird before the MPI, or run with `earlybird exec`.
 *
 * Ownership, completion and thread safety are those of MPI 4.1, chapter 4. Erroneous calls raise the error
 * through the communicator's error handler.
 */
#ifndef EARLYBIRD_H
#define EARLYBIRD_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Info keys of MPI_Psend_init, used from the third start of the request at the latest, of transfers that are too small to gain
 * from several segments from the 17th; the receiver needs none. */
#define EARLYBIRD_INFO_SEGMENTS "earlybird_segments"   /* "auto", "partition", or a number of segments */
#define EARLYBIRD_INFO_AGGR_SIZE "earlybird_aggr_size" /* whole partitions per segment up to so many bytes */

/* With EARLYBIRD_LANES. A thread makes so many neighbouring partitions ready, from partition 0 on: they share a lane, and the
 * next ones use the next lane. */
#define EARLYBIRD_INFO_PARTITIONS_PER_THREAD "earlybird_partitions_per_thread"
#define EARLYBIRD_INFO_LANES "earlybird_lanes" /* the number of lanes that the request uses, at most those of EARLYBIRD_LANES */

/* After so many starts of a request, nearly all that the library finds for it is found: measurements count from then on. */
#define EARLYBIRD_STARTS_UNTIL_SETTLED 110

/* Environment variables. All ranks use the values of rank 0 at MPI_Init, except EARLYBIRD_PROGRESS_THREAD and
 * EARLYBIRD_OFF, which must be set on each rank before MPI_Init. */
#define EARLYBIRD_ENV_OFF "EARLYBIRD_OFF" /* 1, on each rank: every call goes directly to the MPI */
#define EARLYBIRD_ENV_SEGMENTS "EARLYBIRD_SEGMENTS"
#define EARLYBIRD_ENV_AGGR_SIZE "EARLYBIRD_AGGR_SIZE"
#define EARLYBIRD_ENV_COSTS "EARLYBIRD_COSTS"
#define EARLYBIRD_ENV_CACHE "EARLYBIRD_CACHE" /* the folder of what runs keep for later ones, or "off" */
#define EARLYBIRD_ENV_LANES "EARLYBIRD_LANES"
#define EARLYBIRD_ENV_NODE_PATH "EARLYBIRD_NODE_PATH" /* "auto", "off", "ring" or "direct": how data travels within a node */
#define EARLYBIRD_ENV_NODE_BYTES "EARLYBIRD_NODE_BYTES" /* the most memory that all ranks of a node share, */
#define EARLYBIRD_ENV_PAIR_BYTES "EARLYBIRD_PAIR_BYTES" /* and that a rank uses of it for one other rank */
#define EARLYBIRD_ENV_PROGRESS_THREAD "EARLYBIRD_PROGRESS_THREAD"
#define EARLYBIRD_ENV_TRACE "EARLYBIRD_TRACE"
#define EARLYBIRD_ENV_STATS "EARLYBIRD_STATS"
#define EARLYBIRD_ENV_TAG_BITS "EARLYBIRD_TAG_BITS"
#define EARLYBIRD_ENV_WHOLE_JOB "EARLYBIRD_WHOLE_JOB" /* on each rank: every rank of the job has the library */

/* MPI 4's calls, if <mpi.h> is older. EARLYBIRD_NEEDS_PROTOTYPES overrides the default for an MPI that reports version 3
 * but has these calls, as Open MPI 5 does. */
#ifndef EARLYBIRD_NEEDS_PROTOTYPES
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define EARLYBIRD_NEEDS_PROTOTYPES 0
#else
#define EARLYBIRD_NEEDS_PROTOTYPES 1
#endif
#endif

#if EARLYBIRD_NEEDS_PROTOTYPES
int MPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request);
int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                   MPI_Info info, MPI_Request *request);
int MPI_Pready(int partition, MPI_Request request);
int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request);
int MPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request);
int MPI_Parrived(MPI_Request request, int partition, int *flag);
#endif

#ifdef __cplusplus
}
#endif

#endif
