// All-to-all: one block from every rank to every rank.
#pragma once

#include "harness/messages/blocks.hpp"
#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

class Alltoall : public Collective {
 public:
  explicit Alltoall(const Shape &shape) : Collective(shape, shape.all_blocks_bytes(), shape.all_blocks_bytes()) {}

  void prepare(int iteration) override {
    const int own = shape_.team.rank();
    blocks().fill_all(in_.data(), [=](int to) { return content_key(own, to, iteration); });
  }
  void call(MPI_Comm comm) override {
    MPI_Alltoall(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Alltoall_init(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, comm, MPI_INFO_NULL, request);
  }
  bool received(int iteration) const override {
    const int own = shape_.team.rank();
    return blocks().hold_all(out_.data(), [=](int from) { return content_key(from, own, iteration); });
  }

 private:
  Blocks blocks() const { return {shape_.size_bytes, shape_.team.size()}; }
};

}  // namespace earlybird
