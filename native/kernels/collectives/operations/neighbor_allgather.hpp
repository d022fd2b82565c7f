// Neighbourhood allgather: every rank's block to each of its neighbours.
#pragma once

#include "kernels/collectives/operations/exchange.hpp"

namespace earlybird {

class NeighborAllgather : public Exchange {
 public:
  explicit NeighborAllgather(const Shape &shape) : Exchange(shape, same_block_of_neighbours(shape)) {}

  void call(MPI_Comm comm) override {
    MPI_Neighbor_allgather(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Neighbor_allgather_init(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm, MPI_INFO_NULL,
                                request);
  }
};

}  // namespace earlybird
