/* Earlybird's partitioned communication: the names a program or an older MPI may lack.
 *
 * The library is used through MPI's own calls: include this instead of <mpi.h> where the MPI has no partitioned
 * communication of its own (MPI 3.1), or to name the info keys below; a program that includes <mpi.h> alone is
 * served as well. Link with -learlybird before the MPI, or run with `earlybird exec`.
 *
 * Ownership, completion and thread safety are those of MPI 4.1, chapter 4. Calls that meet a misuse raise the
 * error through the communicator's error handler.
 */
#ifndef EARLYBIRD_H
#define EARLYBIRD_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Info keys of MPI_Psend_init, followed from the third start of the request on; the receiver needs none. */
#define EARLYBIRD_INFO_SEGMENTS "earlybird_segments"   /* "auto", "partition", or a number of segments */
#define EARLYBIRD_INFO_AGGR_SIZE "earlybird_aggr_size" /* whole partitions per segment up to so many bytes */

/* Environment variables; the values that rank 0 has at MPI_Init are those of every rank, but that each rank needs
 * EARLYBIRD_PROGRESS_THREAD and EARLYBIRD_OFF itself, before it has MPI. */
#define EARLYBIRD_ENV_OFF "EARLYBIRD_OFF" /* 1, of each rank: every call goes straight to the MPI */
#define EARLYBIRD_ENV_SEGMENTS "EARLYBIRD_SEGMENTS"
#define EARLYBIRD_ENV_AGGR_SIZE "EARLYBIRD_AGGR_SIZE"
#define EARLYBIRD_ENV_COSTS "EARLYBIRD_COSTS"
#define EARLYBIRD_ENV_LANES "EARLYBIRD_LANES"
#define EARLYBIRD_ENV_PROGRESS_THREAD "EARLYBIRD_PROGRESS_THREAD"
#define EARLYBIRD_ENV_TRACE "EARLYBIRD_TRACE"
#define EARLYBIRD_ENV_STATS "EARLYBIRD_STATS"
#define EARLYBIRD_ENV_TAG_BITS "EARLYBIRD_TAG_BITS"
#define EARLYBIRD_ENV_WHOLE_JOB "EARLYBIRD_WHOLE_JOB" /* of each rank: every rank of the job has the library */

/* MPI 4's calls, where <mpi.h> is older. EARLYBIRD_NEEDS_PROTOTYPES overrides the guess for an MPI that reports
 * version 3 and has them all the same, as Open MPI 5 does. */
#ifndef EARLYBIRD_NEEDS_PROTOTYPES
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define EARLYBIRD_NEEDS_PROTOTYPES 0
#else
#define EARLYBIRD_NEEDS_PROTOTYPES 1
#endif
#endif

#if EARLYBIRD_NEEDS_PROTOTYPES
int MPI_Psend_init(const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Precv_init(void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request *request);
int MPI_Pready(int partition, MPI_Request request);
int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request);
int MPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request);
int MPI_Parrived(MPI_Request request, int partition, int *flag);
#endif

#ifdef __cplusplus
}
#endif

#endif
