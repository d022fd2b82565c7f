// Gather: every rank's block to the root.
#pragma once

#include "harness/messages/blocks.hpp"
#include "kernels/collectives/algorithms/linear_blocks.hpp"
#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

class Gather : public Collective {
 public:
  explicit Gather(const Shape &shape) : Collective(shape, shape.size_bytes, shape.at_root() ? shape.all_blocks_bytes() : 0) {}

  void prepare(int iteration) override { fill(in_.data(), shape_.size_bytes, content_key(shape_.team.rank(), 0, iteration)); }
  void call(MPI_Comm comm) override {
    MPI_Gather(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, shape_.root, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Gather_init(in_.data(), shape_.count(), MPI_BYTE, out_.data(), shape_.count(), MPI_BYTE, shape_.root, comm, MPI_INFO_NULL,
                    request);
  }
  bool received(int iteration) const override {
    const Blocks blocks{shape_.size_bytes, shape_.team.size()};
    return !shape_.at_root() || blocks.hold_all(out_.data(), [=](int from) { return content_key(from, 0, iteration); });
  }

  std::map<std::string, Maker> own_algorithms() override {
    return {{"own-linear", [this](const MethodName &, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
               return std::make_unique<LinearBlocks>(shape_.team, comm, LinearBlocks::Direction::to_root, shape_.root,
                                                     shape_.size_bytes, out_.data(), in_.data());
             }}};
  }
};

}  // namespace earlybird
