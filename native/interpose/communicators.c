/* Communicator constructors: the result gets its identity immediately, see communicator.h. */
#include "interpose/interpose.h"

static int named(int rc, MPI_Comm parent, MPI_Comm *made) {
  if (rc == MPI_SUCCESS && eb_world.on) eb_communicator_made(parent, *made);
  return rc;
}

static int named_duplicate(int rc, MPI_Comm parent, MPI_Comm *made) {
  if (rc == MPI_SUCCESS && eb_world.on) eb_communicator_duplicated(parent, *made);
  return rc;
}

EB_EXPORT int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm) {
  return named_duplicate(PMPI_Comm_dup(comm, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm) {
  return named_duplicate(PMPI_Comm_dup_with_info(comm, info, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm) {
  return named(PMPI_Comm_create(comm, group, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm) {
  const int rc = PMPI_Comm_create_group(comm, group, tag, newcomm);
  if (rc == MPI_SUCCESS && eb_world.on) eb_communicator_made_of_group(comm, group, tag, *newcomm);
  return rc;
}

EB_EXPORT int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm) {
  return named(PMPI_Comm_split(comm, color, key, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm) {
  return named(PMPI_Comm_split_type(comm, split_type, key, info, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                                   MPI_Comm *newintercomm) {
  const int rc = PMPI_Intercomm_create(local_comm, local_leader, peer_comm, remote_leader, tag, newintercomm);
  if (rc == MPI_SUCCESS && eb_world.on) eb_communicator_joined(local_comm, tag, *newintercomm);
  return rc;
}

EB_EXPORT int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newcomm) {
  return named(PMPI_Intercomm_merge(intercomm, high, newcomm), intercomm, newcomm);
}

EB_EXPORT int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *newcomm) {
  return named(PMPI_Cart_create(comm, ndims, dims, periods, reorder, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm) {
  return named(PMPI_Cart_sub(comm, remain_dims, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder, MPI_Comm *newcomm) {
  return named(PMPI_Graph_create(comm, nnodes, index, edges, reorder, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Dist_graph_create(MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[],
                                    const int weights[], MPI_Info info, int reorder, MPI_Comm *newcomm) {
  return named(PMPI_Dist_graph_create(comm, n, sources, degrees, destinations, weights, info, reorder, newcomm), comm, newcomm);
}

EB_EXPORT int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree, const int sources[], const int sourceweights[],
                                             int outdegree, const int destinations[], const int destweights[], MPI_Info info,
                                             int reorder, MPI_Comm *newcomm) {
  return named(PMPI_Dist_graph_create_adjacent(comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info,
                                               reorder, newcomm),
               comm, newcomm);
}

/* The handle is there when the call returns, on every MPI seen, though it may not be used yet. */
EB_EXPORT int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request) {
  return named_duplicate(PMPI_Comm_idup(comm, newcomm, request), comm, newcomm);
}

#ifdef EB_HAS_IDUP_WITH_INFO
EB_EXPORT int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request) {
  return named_duplicate(PMPI_Comm_idup_with_info(comm, info, newcomm, request), comm, newcomm);
}
#endif

#ifdef EB_HAS_SESSIONS
static int left_to_mpi(int rc, MPI_Comm *made) {
  if (rc == MPI_SUCCESS && eb_world.on) eb_communicator_made_of_session(*made);
  return rc;
}

EB_EXPORT int MPI_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                         MPI_Comm *newcomm) {
  return left_to_mpi(PMPI_Comm_create_from_group(group, stringtag, info, errhandler, newcomm), newcomm);
}

EB_EXPORT int MPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                               const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                               MPI_Comm *newintercomm) {
  return left_to_mpi(PMPI_Intercomm_create_from_groups(local_group, local_leader, remote_group, remote_leader, stringtag, info,
                                                       errhandler, newintercomm),
                     newintercomm);
}
#endif
