// Scatter: a block of the root's to every rank.
#pragma once

#include "harness/messages/blocks.hpp"
#include "kernels/collectives/algorithms/linear_blocks.hpp"
#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

class Scatter : public Collective {
 public:
  explicit Scatter(const Shape &shape) : Collective(shape, shape.at_root() ? shape.all_blocks_bytes() : 0, shape.size_bytes) {}

  void prepare(int iteration) override {
    const Blocks blocks{shape_.size_bytes, shape_.at_root() ? shape_.team.size() : 0};
    blocks.fill_all(in_.data(), [=](int to) { return content_key(shape_.root, to, iteration); });
  }
  void call(MPI_Comm comm) override {
    MPI_Scatter(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, shape_.root, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Scatter_init(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, shape_.root, comm, MPI_INFO_NULL,
                     request);
  }
  bool received(int iteration) const override {
    return holds(out_.data(), shape_.size_bytes, content_key(shape_.root, shape_.team.rank(), iteration));
  }

  std::map<std::string, Maker> own_algorithms() override {
    return {{"own-linear", [this](const MethodName &, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
               return std::make_unique<LinearBlocks>(shape_.team, comm, LinearBlocks::Direction::from_root, shape_.root,
                                                     shape_.size_bytes, in_.data(), out_.data());
             }}};
  }
};

}  // namespace earlybird
