/* Communicators that are created and freed: their time, and which creation from its parent one is. Their members are read when
 * they are first used.
 */
#include "recorder/calls/wrap.h"
#include "recorder/recording/identity.h"

/* All ranks of `comm` make the call. */
#define CREATED(created)                                        \
  if (rc == MPI_SUCCESS) eb_identity_created(comm, *(created)); \
  ENTERED(comm);                                                \
  EB_ONLY_TIME
/* If it was not known before the call. */
#define ENTERED(over) eb_span_entered(&span, call, eb_span_communicator(&span, over), EB_PEER_NONE, EB_BYTES_UNKNOWN)

/* Those of the new one alone do. */
#define CREATED_ALONE(created)                                       \
  if (rc == MPI_SUCCESS) eb_identity_created_alone(*(created), tag); \
  EB_ONLY_TIME
/* The new one must not be used yet. */
#define PROMISED                                               \
  if (rc == MPI_SUCCESS) eb_identity_promised(comm, *newcomm); \
  EB_ONLY_TIME

/* Its identity is not known. */
#define CREATED_ELSEWHERE(created)                          \
  if (rc == MPI_SUCCESS) eb_identity_forgotten(*(created)); \
  EB_ONLY_TIME

EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Comm_dup, (MPI_Comm comm, MPI_Comm *newcomm), (comm, newcomm), EB_ABOUT_ALL, CREATED(newcomm))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm), (comm, info, newcomm),
              EB_ABOUT_ALL, CREATED(newcomm))
EB_WRAP_OPEN(MPI_Comm_idup, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request), (comm, newcomm, request), EB_OPENED(PROMISED))
#ifdef EB_HAS_IDUP_WITH_INFO
EB_WRAP_OPEN(MPI_Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request),
             (comm, info, newcomm, request), EB_OPENED(PROMISED))
#endif
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *newcomm), (comm, color, key, newcomm),
              EB_ABOUT_ALL, CREATED(newcomm))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Comm_split_type, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm),
              (comm, split_type, key, info, newcomm), EB_ABOUT_ALL, CREATED(newcomm))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm), (comm, group, newcomm),
              EB_ABOUT_ALL, CREATED(newcomm))
EB_WRAP(MPI_Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm), (comm, group, tag, newcomm),
        CREATED_ALONE(newcomm))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Comm_free, (MPI_Comm * comm), (comm), eb_identity_forgotten(*comm), EB_ONLY_TIME)

/* Names are part of what a recording says of a communicator. */
EB_CALL_OF(EB_CALL_PART, MPI_Comm_set_name);
EB_EXPORT int MPI_Comm_set_name(MPI_Comm comm, const char *comm_name) {
  const int rc = EB_NEXT(MPI_Comm_set_name)(comm, comm_name);
  if (rc == MPI_SUCCESS && __atomic_load_n(&eb_recorder_is_on, __ATOMIC_RELAXED)) eb_communicator_named(comm, comm_name);
  return rc;
}

/* All ranks of the local group make the call; that the others do is not known here. */
#define ENTERS_LOCAL eb_span_enters(&span, local_comm, EB_NO_ROOT, EB_BYTES_UNKNOWN)
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Intercomm_create,
              (MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag, MPI_Comm *newintercomm),
              (local_comm, local_leader, peer_comm, remote_leader, tag, newintercomm), ENTERS_LOCAL, ENTERED(local_comm);
              CREATED_ALONE(newintercomm))
#define MERGED                                                          \
  if (rc == MPI_SUCCESS) eb_identity_created(intercomm, *newintracomm); \
  ENTERED(intercomm);                                                   \
  EB_ONLY_TIME
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Intercomm_merge, (MPI_Comm intercomm, int high, MPI_Comm *newintracomm),
              (intercomm, high, newintracomm), eb_span_enters(&span, intercomm, EB_NO_ROOT, EB_BYTES_UNKNOWN), MERGED)

EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Cart_create,
              (MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *comm_cart),
              (comm, ndims, dims, periods, reorder, comm_cart), EB_ABOUT_ALL, CREATED(comm_cart))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm),
              (comm, remain_dims, newcomm), EB_ABOUT_ALL, CREATED(newcomm))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Graph_create,
              (MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder, MPI_Comm *comm_graph),
              (comm, nnodes, index, edges, reorder, comm_graph), EB_ABOUT_ALL, CREATED(comm_graph))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Dist_graph_create,
              (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[], const int weights[],
               MPI_Info info, int reorder, MPI_Comm *comm_graph),
              (comm, n, sources, degrees, destinations, weights, info, reorder, comm_graph), EB_ABOUT_ALL, CREATED(comm_graph))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Dist_graph_create_adjacent,
              (MPI_Comm comm, int indegree, const int sources[], const int sourceweights[], int outdegree, const int destinations[],
               const int destweights[], MPI_Info info, int reorder, MPI_Comm *comm_graph),
              (comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder, comm_graph),
              EB_ABOUT_ALL, CREATED(comm_graph))

EB_WRAP(MPI_Comm_spawn,
        (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *intercomm,
         int errcodes[]),
        (command, argv, maxprocs, info, root, comm, intercomm, errcodes), CREATED_ELSEWHERE(intercomm))
EB_WRAP(MPI_Comm_spawn_multiple,
        (int count, char *commands[], char **argvs[], const int maxprocs[], const MPI_Info infos[], int root, MPI_Comm comm,
         MPI_Comm *intercomm, int errcodes[]),
        (count, commands, argvs, maxprocs, infos, root, comm, intercomm, errcodes), CREATED_ELSEWHERE(intercomm))
EB_WRAP(MPI_Comm_accept, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port_name, info, root, comm, newcomm), CREATED_ELSEWHERE(newcomm))
EB_WRAP(MPI_Comm_connect, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
        (port_name, info, root, comm, newcomm), CREATED_ELSEWHERE(newcomm))
EB_WRAP(MPI_Comm_join, (int fd, MPI_Comm *intercomm), (fd, intercomm), CREATED_ELSEWHERE(intercomm))
EB_WRAP_ABOUT(EB_CALL_ALONE, MPI_Comm_disconnect, (MPI_Comm * comm), (comm), eb_identity_forgotten(*comm), EB_ONLY_TIME)
