/* Neighbourhood collectives: the topology says who sends to whom, so each block is a message. */
#include "recorder/calls/collective.h"
#include "recorder/calls/wrap.h"

/* The blocks of one side: of `counts`, else of `count` for each neighbour; of `types`, else of `type`. */
typedef struct {
  int64_t count;
  eb_counts counts;
  MPI_Datatype type;
  const MPI_Datatype *types;
} side;

static uint64_t count_blocks(const eb_span *span, unsigned call, eb_role role, const eb_communicator *communicator, int num,
                             const int *neighbours, side blocks) {
  uint64_t sum = 0;
  for (int n = 0; n < num; n++) {
    const int64_t count = blocks.counts.at ? eb_count_at(blocks.counts, n) : blocks.count;
    if (neighbours[n] == EB_PEER_NULL || count <= 0) continue;
    const uint64_t bytes = eb_bytes(span, count, blocks.types ? blocks.types[n] : blocks.type);
    eb_add_block(span, call, role, communicator, neighbours[n], bytes);
    sum += bytes;
  }
  return sum;
}

static void exchanged(const eb_span *span, unsigned call, int rc, const eb_communicator *communicator, side sent, side received) {
  uint64_t bytes = 0;
  if (rc == MPI_SUCCESS && communicator) {
    bytes = count_blocks(span, call, EB_ROLE_SENT, communicator, communicator->num_destinations, communicator->destinations, sent);
    (void)count_blocks(span, call, EB_ROLE_RECEIVED, communicator, communicator->num_sources, communicator->sources, received);
  }
  eb_add_collective(span, call, communicator, EB_PEER_NONE, bytes);
}

#define EACH(given, given_type) ((side){.count = (given), .type = (given_type)})
#define OF_COUNTS(given, given_type) ((side){.counts = EB_COUNTS(given), .type = (given_type)})
#define OF_TYPES(given, given_types) ((side){.counts = EB_COUNTS(given), .types = (given_types)})
#define COUNTED(sent, received) exchanged(&span, call, rc, eb_span_communicator(&span, comm), sent, received)

#define BLOCKS(COUNT, DISPLACEMENT) \
  const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm
#define BLOCKS_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm
EB_COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, BLOCKS, BLOCKS_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              COUNTED(EACH(sendcount, sendtype), EACH(recvcount, recvtype)))
EB_COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, BLOCKS, BLOCKS_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              COUNTED(EACH(sendcount, sendtype), EACH(recvcount, recvtype)))

#define ALLGATHERV(COUNT, DISPLACEMENT)                                                                 \
  const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[], \
      const DISPLACEMENT displs[], MPI_Datatype recvtype, MPI_Comm comm
#define ALLGATHERV_ARGUMENTS sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm
EB_COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, ALLGATHERV, ALLGATHERV_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              COUNTED(EACH(sendcount, sendtype), OF_COUNTS(recvcounts, recvtype)))

#define ALLTOALLV(COUNT, DISPLACEMENT)                                                                               \
  const void *sendbuf, const COUNT sendcounts[], const DISPLACEMENT sdispls[], MPI_Datatype sendtype, void *recvbuf, \
      const COUNT recvcounts[], const DISPLACEMENT rdispls[], MPI_Datatype recvtype, MPI_Comm comm
#define ALLTOALLV_ARGUMENTS sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm
EB_COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, ALLTOALLV, ALLTOALLV_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              COUNTED(OF_COUNTS(sendcounts, sendtype), OF_COUNTS(recvcounts, recvtype)))

/* Displacements are always MPI_Aint here. */
#define ALLTOALLW(COUNT, DISPLACEMENT)                                                                                    \
  const void *sendbuf, const COUNT sendcounts[], const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, \
      const COUNT recvcounts[], const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm
#define ALLTOALLW_ARGUMENTS sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm
EB_COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, ALLTOALLW, ALLTOALLW_ARGUMENTS, EB_UNSIZED(EB_NO_ROOT),
              COUNTED(OF_TYPES(sendcounts, sendtypes), OF_TYPES(recvcounts, recvtypes)))
