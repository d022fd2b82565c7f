// Neighbourhood all-to-all: one block from every rank to each of its neighbours.
#pragma once

#include "kernels/collectives/operations/exchange.hpp"

namespace earlybird {

class NeighborAlltoall : public Exchange {
 public:
  explicit NeighborAlltoall(const Shape &shape) : Exchange(shape, blocks_of_neighbours(shape)) {}

  void call(MPI_Comm comm) override {
    MPI_Neighbor_alltoall(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Neighbor_alltoall_init(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm, MPI_INFO_NULL,
                               request);
  }
};

}  // namespace earlybird
