/* Collectives over all ranks of a communicator.
 *
 * Bytes are what this rank passes in: its send buffer, or its receive buffer where it sends nothing. Who sends to whom is up to
 * the MPI's algorithm, except in MPI_Alltoallv and MPI_Alltoallw, whose arguments are recorded for each peer.
 */
#include "recorder/calls/collective.h"
#include "recorder/calls/wrap.h"

static void counted(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, uint64_t bytes) {
  eb_add_collective(span, call, communicator, EB_PEER_NONE, rc == MPI_SUCCESS ? bytes : 0);
}

static void counted_rooted(const eb_span *span, unsigned call, int rc, const eb_communicator *communicator, int root,
                           uint64_t bytes) {
  eb_add_collective(span, call, communicator, rc == MPI_SUCCESS ? eb_root(communicator, root) : EB_PEER_NONE,
                    rc == MPI_SUCCESS && root != MPI_PROC_NULL ? bytes : 0);
}

#define COMMUNICATOR eb_span_communicator(&span, comm)
static int num_peers(const eb_communicator *communicator) { return communicator ? communicator->peers.num : 0; }

EB_WRAP_QUICK(EB_CALL_ALONE, MPI_Barrier, EB_NEXT(MPI_Barrier), (MPI_Comm comm), (comm),
              EB_COLLECTIVE_QUICKLY(MPI_Barrier, (comm), EB_UNSIZED(EB_NO_ROOT)), EB_ABOUT_ALL,
              counted(&span, call, rc, COMMUNICATOR, 0))
EB_WRAP_ABOUT(EB_CALL_OPEN, MPI_Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request), EB_ABOUT_ALL,
              EB_OPENED_COLLECTIVE(counted(&span, call, rc, COMMUNICATOR, 0)))
EB_PERSISTENT(MPI_Barrier_init, (MPI_Comm comm, MPI_Info info, MPI_Request *request), (comm, info, request),
              counted(&span, call, rc, COMMUNICATOR, 0))

#define BCAST(COUNT, DISPLACEMENT) void *buffer, COUNT count, MPI_Datatype datatype, int root, MPI_Comm comm
#define BCAST_ARGUMENTS buffer, count, datatype, root, comm
EB_COLLECTIVE(Bcast, Ibcast, BCAST, BCAST_ARGUMENTS, EB_SIZED(root, count, datatype),
              counted_rooted(&span, call, rc, COMMUNICATOR, root, root == MPI_PROC_NULL ? 0 : eb_bytes(&span, count, datatype)))

/* Of MPI_Gather and MPI_Scatter the root's part is the buffer with a block for each rank. Arguments that the standard says
 * are not significant are not looked at. */
static void gathered(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, int root, const void *sendbuf,
                     int64_t sendcount, MPI_Datatype sendtype, int64_t recvcount, MPI_Datatype recvtype) {
  uint64_t bytes = 0;
  if (rc != MPI_SUCCESS || root == MPI_PROC_NULL) bytes = 0;
  else if (eb_is_root(communicator, root)) bytes = eb_bytes(span, recvcount * num_peers(communicator), recvtype);
  else if (sendbuf != MPI_IN_PLACE) bytes = eb_bytes(span, sendcount, sendtype);
  counted_rooted(span, call, rc, communicator, root, bytes);
}

#define BLOCKS(COUNT, DISPLACEMENT)                                                                                             \
  const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, int root, \
      MPI_Comm comm
#define BLOCKS_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm
EB_COLLECTIVE(Gather, Igather, BLOCKS, BLOCKS_ARGUMENTS, EB_UNSIZED(root),
              gathered(&span, call, rc, COMMUNICATOR, root, sendbuf, sendcount, sendtype, recvcount, recvtype))
/* The same with the directions exchanged. */
EB_COLLECTIVE(Scatter, Iscatter, BLOCKS, BLOCKS_ARGUMENTS, EB_UNSIZED(root),
              gathered(&span, call, rc, COMMUNICATOR, root, recvbuf, recvcount, recvtype, sendcount, sendtype))

static void gathered_v(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, int root, const void *own,
                       int64_t own_count, MPI_Datatype own_type, eb_counts counts, MPI_Datatype type) {
  uint64_t bytes = 0;
  if (rc != MPI_SUCCESS || root == MPI_PROC_NULL) bytes = 0;
  else if (eb_is_root(communicator, root)) bytes = eb_sum(span, counts, num_peers(communicator), type);
  else if (own != MPI_IN_PLACE) bytes = eb_bytes(span, own_count, own_type);
  counted_rooted(span, call, rc, communicator, root, bytes);
}

#define GATHERV(COUNT, DISPLACEMENT)                                                                    \
  const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], \
      const DISPLACEMENT displs[], MPI_Datatype recvtype, int root, MPI_Comm comm
#define GATHERV_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm
EB_COLLECTIVE(Gatherv, Igatherv, GATHERV, GATHERV_ARGUMENTS, EB_UNSIZED(root),
              gathered_v(&span, call, rc, COMMUNICATOR, root, sendbuf, sendcount, sendtype, EB_COUNTS(recvcounts), recvtype))

#define SCATTERV(COUNT, DISPLACEMENT)                                                                               \
  const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT displs[], MPI_Datatype sendtype, void *recvbuf, \
      COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm
#define SCATTERV_ARGUMENTS sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm
EB_COLLECTIVE(Scatterv, Iscatterv, SCATTERV, SCATTERV_ARGUMENTS, EB_UNSIZED(root),
              gathered_v(&span, call, rc, COMMUNICATOR, root, recvbuf, recvcount, recvtype, EB_COUNTS(sendcounts), sendtype))

/* What all ranks pass alike. */
#define EVEN_BLOCKS EB_SIZED(EB_NO_ROOT, recvcount, recvtype)
#define EVEN_COUNTS EB_SIZED(EB_NO_ROOT, count, datatype)

/* A rank's own block, or in place the one that it has in the receive buffer. */
#define OWN_BLOCK (sendbuf == MPI_IN_PLACE ? eb_bytes(&span, recvcount, recvtype) : eb_bytes(&span, sendcount, sendtype))
#define ALL_BLOCKS(COUNT, DISPLACEMENT) \
  const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm
#define ALL_BLOCKS_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm
EB_COLLECTIVE(Allgather, Iallgather, ALL_BLOCKS, ALL_BLOCKS_ARGUMENTS, EVEN_BLOCKS,
              counted(&span, call, rc, COMMUNICATOR, OWN_BLOCK))

static void exchanged_evenly(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, uint64_t block) {
  counted(span, call, rc, communicator, block * (uint64_t)num_peers(communicator));
}
EB_COLLECTIVE(Alltoall, Ialltoall, ALL_BLOCKS, ALL_BLOCKS_ARGUMENTS, EVEN_BLOCKS,
              exchanged_evenly(&span, call, rc, COMMUNICATOR, OWN_BLOCK))

static void gathered_everywhere(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, const void *sendbuf,
                                int64_t sendcount, MPI_Datatype sendtype, eb_counts counts, MPI_Datatype type) {
  const bool is_in_place = sendbuf == MPI_IN_PLACE;
  if (rc != MPI_SUCCESS || !communicator) counted(span, call, rc, communicator, 0);
  else
    counted(span, call, rc, communicator,
            is_in_place ? eb_bytes(span, eb_count_at(counts, communicator->rank), type) : eb_bytes(span, sendcount, sendtype));
}

#define ALLGATHERV(COUNT, DISPLACEMENT)                                                                 \
  const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], \
      const DISPLACEMENT displs[], MPI_Datatype recvtype, MPI_Comm comm
#define ALLGATHERV_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm
EB_COLLECTIVE(Allgatherv, Iallgatherv, ALLGATHERV, ALLGATHERV_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              gathered_everywhere(&span, call, rc, COMMUNICATOR, sendbuf, sendcount, sendtype, EB_COUNTS(recvcounts), recvtype))

/* One side of MPI_Alltoallv (`types` NULL: all blocks of one type) or MPI_Alltoallw. Returns its bytes. */
static uint64_t count_blocks(const eb_span *span, unsigned call, eb_role role, const eb_communicator *communicator,
                             eb_counts counts, MPI_Datatype type, const MPI_Datatype *types) {
  uint64_t sum = 0;
  for (int r = 0; r < num_peers(communicator); r++) {
    const uint64_t bytes = eb_bytes(span, eb_count_at(counts, r), types && eb_count_at(counts, r) > 0 ? types[r] : type);
    eb_add_block(span, call, role, communicator, eb_members_world_rank(&communicator->peers, r), bytes);
    sum += bytes;
  }
  return sum;
}

static void exchanged(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, bool is_in_place,
                      eb_counts sendcounts, MPI_Datatype sendtype, const MPI_Datatype *sendtypes, eb_counts recvcounts,
                      MPI_Datatype recvtype, const MPI_Datatype *recvtypes) {
  uint64_t bytes = 0;
  if (rc == MPI_SUCCESS && is_in_place)
    bytes = count_blocks(span, call, EB_ROLE_SENT, communicator, recvcounts, recvtype, recvtypes);
  else if (rc == MPI_SUCCESS) bytes = count_blocks(span, call, EB_ROLE_SENT, communicator, sendcounts, sendtype, sendtypes);
  if (rc == MPI_SUCCESS) (void)count_blocks(span, call, EB_ROLE_RECEIVED, communicator, recvcounts, recvtype, recvtypes);
  counted(span, call, rc, communicator, bytes);
}

#define ALLTOALLV(COUNT, DISPLACEMENT)                                                                               \
  const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], MPI_Datatype sendtype, void *recvbuf, \
      const COUNT recvcounts[], const DISPLACEMENT rdispls[], MPI_Datatype recvtype, MPI_Comm comm
#define ALLTOALLV_ARGUMENTS sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm
EB_COLLECTIVE(Alltoallv, Ialltoallv, ALLTOALLV, ALLTOALLV_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              exchanged(&span, call, rc, COMMUNICATOR, sendbuf == MPI_IN_PLACE, EB_COUNTS(sendcounts), sendtype, NULL,
                        EB_COUNTS(recvcounts), recvtype, NULL))

#define ALLTOALLW(COUNT, DISPLACEMENT)                                                                                        \
  const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, \
      const COUNT recvcounts[], const DISPLACEMENT rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
#define ALLTOALLW_ARGUMENTS sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm
EB_COLLECTIVE(Alltoallw, Ialltoallw, ALLTOALLW, ALLTOALLW_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              exchanged(&span, call, rc, COMMUNICATOR, sendbuf == MPI_IN_PLACE, EB_COUNTS(sendcounts), MPI_DATATYPE_NULL, sendtypes,
                        EB_COUNTS(recvcounts), MPI_DATATYPE_NULL, recvtypes))

#define REDUCE(COUNT, DISPLACEMENT) \
  const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm
#define REDUCE_ARGUMENTS sendbuf, recvbuf, count, datatype, op, root, comm
EB_COLLECTIVE(Reduce, Ireduce, REDUCE, REDUCE_ARGUMENTS, EB_SIZED(root, count, datatype),
              counted_rooted(&span, call, rc, COMMUNICATOR, root, root == MPI_PROC_NULL ? 0 : eb_bytes(&span, count, datatype)))

#define ALL_REDUCE(COUNT, DISPLACEMENT) \
  const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
#define ALL_REDUCE_ARGUMENTS sendbuf, recvbuf, count, datatype, op, comm
EB_COLLECTIVE(Allreduce, Iallreduce, ALL_REDUCE, ALL_REDUCE_ARGUMENTS, EVEN_COUNTS,
              counted(&span, call, rc, COMMUNICATOR, eb_bytes(&span, count, datatype)))
EB_COLLECTIVE(Scan, Iscan, ALL_REDUCE, ALL_REDUCE_ARGUMENTS, EVEN_COUNTS,
              counted(&span, call, rc, COMMUNICATOR, eb_bytes(&span, count, datatype)))
EB_COLLECTIVE(Exscan, Iexscan, ALL_REDUCE, ALL_REDUCE_ARGUMENTS, EVEN_COUNTS,
              counted(&span, call, rc, COMMUNICATOR, eb_bytes(&span, count, datatype)))

/* Its count is that of one rank's result. */
static void reduced_blocks(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, uint64_t block) {
  counted(span, call, rc, communicator, block * (uint64_t)(communicator ? communicator->local.num : 0));
}
EB_COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, ALL_REDUCE, ALL_REDUCE_ARGUMENTS, EVEN_COUNTS,
              reduced_blocks(&span, call, rc, COMMUNICATOR, eb_bytes(&span, count, datatype)))

static void reduced_scattered(const eb_span *span, unsigned call, int rc, eb_communicator *communicator, eb_counts counts,
                              MPI_Datatype type) {
  counted(span, call, rc, communicator,
          rc == MPI_SUCCESS && communicator ? eb_sum(span, counts, communicator->local.num, type) : 0);
}

#define REDUCE_SCATTER(COUNT, DISPLACEMENT) \
  const void *sendbuf, void *recvbuf, const COUNT recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm
#define REDUCE_SCATTER_ARGUMENTS sendbuf, recvbuf, recvcounts, datatype, op, comm
EB_COLLECTIVE(Reduce_scatter, Ireduce_scatter, REDUCE_SCATTER, REDUCE_SCATTER_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              reduced_scattered(&span, call, rc, COMMUNICATOR, EB_COUNTS(recvcounts), datatype))
