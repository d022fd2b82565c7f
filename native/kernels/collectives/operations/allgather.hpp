// Allgather: every rank's block to every rank.
#pragma once

#include "harness/messages/blocks.hpp"
#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

class Allgather : public Collective {
 public:
  explicit Allgather(const Shape &shape) : Collective(shape, shape.size_bytes, shape.all_blocks_bytes()) {}

  void prepare(int iteration) override { fill(in_.data(), shape_.size_bytes, content_key(shape_.team.rank(), 0, iteration)); }
  void call(MPI_Comm comm) override {
    MPI_Allgather(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Allgather_init(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm, MPI_INFO_NULL, request);
  }
  bool received(int iteration) const override {
    const Blocks blocks{shape_.size_bytes, shape_.team.size()};
    return blocks.hold_all(out_.data(), [=](int from) { return content_key(from, 0, iteration); });
  }
};

}  // namespace earlybird
