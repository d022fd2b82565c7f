// All-to-all with counts: a block of its own size from every rank to every rank.
#pragma once

#include "kernels/collectives/operations/exchange.hpp"

namespace earlybird {

class Alltoallv : public Exchange {
 public:
  explicit Alltoallv(const Shape &shape) : Exchange(shape, blocks_of_all_pairs(shape)) {}

  void call(MPI_Comm comm) override {
    const VariedBlocks &in = blocks_.sends, &out = blocks_.receives;
    MPI_Alltoallv(in_.data(), in.counts(), in.displacements(), MPI_BYTE, out_.data(), out.counts(), out.displacements(), MPI_BYTE,
                  comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    const VariedBlocks &in = blocks_.sends, &out = blocks_.receives;
    MPI_Alltoallv_init(in_.data(), in.counts(), in.displacements(), MPI_BYTE, out_.data(), out.counts(), out.displacements(),
                       MPI_BYTE, comm, MPI_INFO_NULL, request);
  }
};

}  // namespace earlybird
