// The trees of our own reductions.
#include "kernels/collectives/reduce.hpp"

#include "harness/text/refuse.hpp"
#include "kernels/collectives/tree_reduce.hpp"

namespace earlybird {

namespace {

void require_whole_elements(const MethodName &name, std::size_t size_bytes, const Summands &summands) {
  if (name.segment_bytes < size_bytes && name.segment_bytes % summands.element_bytes() != 0)
    refuse("the method " + name.text + " splits doubles: size_bytes=" + std::to_string(size_bytes) +
           " is reduced as doubles; give a segment size that is a multiple of " + std::to_string(summands.element_bytes()) +
           " bytes");
}

}  // namespace

std::map<std::string, Collective::Maker> Reduce::own_algorithms() {
  const auto up = [this](Tree (*tree)(int, int, int)) {
    return [this, tree](const MethodName &name, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
      require_whole_elements(name, shape_.size_bytes, summands_);
      Team &team = shape_.team;
      return std::make_unique<TreeReduce>(team, comm, tree(team.rank(), team.size(), shape_.root),
                                          Segments(shape_.size_bytes, name.segment_bytes), summands_, in_.data(), out_.data());
    };
  };
  return {{"own-linear", up(linear_tree)}, {"own-pipeline", up(chain_tree)}, {"own-binomial", up(binomial_tree)}};
}

}  // namespace earlybird
