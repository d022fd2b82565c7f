// Reduction: the sum of all ranks' buffers at the root.
#pragma once

#include "harness/text/refuse.hpp"
#include "kernels/collectives/algorithms/tree_reduce.hpp"
#include "kernels/collectives/operations/collective.hpp"
#include "kernels/collectives/parts/summands.hpp"

namespace earlybird {

class Reduce : public Collective {
 public:
  explicit Reduce(const Shape &shape)
      : Collective(shape, shape.size_bytes, shape.at_root() ? shape.size_bytes : 0), summands_(shape.size_bytes) {}

  void prepare(int iteration) override { summands_.fill(in_.data(), shape_.team.rank(), iteration); }
  void call(MPI_Comm comm) override {
    MPI_Reduce(in_.data(), out_.data(), summands_.count(shape_.size_bytes), summands_.type(), summands_.op(), shape_.root, comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Reduce_init(in_.data(), out_.data(), summands_.count(shape_.size_bytes), summands_.type(), summands_.op(), shape_.root,
                    comm, MPI_INFO_NULL, request);
  }
  bool received(int iteration) const override {
    return !shape_.at_root() || summands_.hold(out_.data(), shape_.team.size(), iteration);
  }

  // The trees of our own reductions.
  std::map<std::string, Maker> own_algorithms() override {
    const auto up = [this](Tree (*tree)(int, int, int)) {
      return [this, tree](const MethodName &name, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
        require_whole_elements(name);
        Team &team = shape_.team;
        return std::make_unique<TreeReduce>(team, comm, tree(team.rank(), team.size(), shape_.root),
                                            Segments(shape_.size_bytes, name.segment_bytes), summands_, in_.data(), out_.data());
      };
    };
    return {{"own-linear", up(linear_tree)}, {"own-pipeline", up(chain_tree)}, {"own-binomial", up(binomial_tree)}};
  }

 private:
  void require_whole_elements(const MethodName &name) const {
    if (name.segment_bytes < shape_.size_bytes && name.segment_bytes % summands_.element_bytes() != 0)
      refuse("the method " + name.text + " splits doubles: size_bytes=" + std::to_string(shape_.size_bytes) +
             " is reduced as doubles; give a segment size that is a multiple of " + std::to_string(summands_.element_bytes()) +
             " bytes");
  }

  Summands summands_;
};

}  // namespace earlybird
