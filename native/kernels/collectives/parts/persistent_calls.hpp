// Prototypes of the persistent collectives that are timed. Weak, so that the kernel links with an MPI without them.
#pragma once

#include <mpi.h>

#define EB_IN const void *, int, MPI_Datatype
#define EB_OUT void *, int, MPI_Datatype
#define EB_IN_V const void *, const int[], const int[], MPI_Datatype
#define EB_OUT_V void *, const int[], const int[], MPI_Datatype
#define EB_END MPI_Comm, MPI_Info, MPI_Request *

// NOLINTBEGIN(readability-redundant-declaration): an older <mpi.h> has none of them
extern "C" {
int MPI_Allgather_init(EB_IN, EB_OUT, EB_END);
int MPI_Allgatherv_init(EB_IN, EB_OUT_V, EB_END);
int MPI_Allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, EB_END);
int MPI_Alltoall_init(EB_IN, EB_OUT, EB_END);
int MPI_Alltoallv_init(EB_IN_V, EB_OUT_V, EB_END);
int MPI_Barrier_init(EB_END);
int MPI_Bcast_init(EB_OUT, int, EB_END);
int MPI_Gather_init(EB_IN, EB_OUT, int, EB_END);
int MPI_Neighbor_allgather_init(EB_IN, EB_OUT, EB_END);
int MPI_Neighbor_alltoall_init(EB_IN, EB_OUT, EB_END);
int MPI_Neighbor_alltoallv_init(EB_IN_V, EB_OUT_V, EB_END);
int MPI_Reduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, int, EB_END);
int MPI_Scatter_init(EB_IN, EB_OUT, int, EB_END);
}
// NOLINTEND(readability-redundant-declaration)

#undef EB_IN
#undef EB_OUT
#undef EB_IN_V
#undef EB_OUT_V
#undef EB_END

#pragma weak MPI_Allgather_init
#pragma weak MPI_Allgatherv_init
#pragma weak MPI_Allreduce_init
#pragma weak MPI_Alltoall_init
#pragma weak MPI_Alltoallv_init
#pragma weak MPI_Barrier_init
#pragma weak MPI_Bcast_init
#pragma weak MPI_Gather_init
#pragma weak MPI_Neighbor_allgather_init
#pragma weak MPI_Neighbor_alltoall_init
#pragma weak MPI_Neighbor_alltoallv_init
#pragma weak MPI_Reduce_init
#pragma weak MPI_Scatter_init

namespace earlybird {

inline bool has_persistent_collectives() { return &MPI_Bcast_init != nullptr; }

}  // namespace earlybird
