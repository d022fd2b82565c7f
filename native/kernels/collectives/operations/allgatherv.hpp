// Allgather with counts: every rank's block, of its own size, to every rank.
#pragma once

#include "kernels/collectives/operations/exchange.hpp"

namespace earlybird {

class Allgatherv : public Exchange {
 public:
  explicit Allgatherv(const Shape &shape) : Exchange(shape, blocks_of_all_ranks(shape)) {}

  void call(MPI_Comm comm) override {
    const VariedBlocks &out = blocks_.receives;
    MPI_Allgatherv(in_.data(), blocks_.sends.bytes(0), MPI_BYTE, out_.data(), out.counts(), out.displacements(), MPI_BYTE, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    const VariedBlocks &out = blocks_.receives;
    MPI_Allgatherv_init(in_.data(), blocks_.sends.bytes(0), MPI_BYTE, out_.data(), out.counts(), out.displacements(), MPI_BYTE,
                        comm, MPI_INFO_NULL, request);
  }
};

}  // namespace earlybird
