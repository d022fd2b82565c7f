// The trees of our own broadcasts.
#include "kernels/collectives/bcast.hpp"

#include "kernels/collectives/tree_bcast.hpp"

namespace earlybird {

std::map<std::string, Collective::Maker> Bcast::own_algorithms() {
  const auto down = [this](Tree (*tree)(int, int, int)) {
    return [this, tree](const MethodName &name, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
      Team &team = shape_.team;
      return std::make_unique<TreeBcast>(team, comm, tree(team.rank(), team.size(), shape_.root),
                                         Segments(shape_.size_bytes, name.segment_bytes), in_.data());
    };
  };
  return {{"own-linear", down(linear_tree)}, {"own-pipeline", down(chain_tree)}, {"own-binomial", down(binomial_tree)}};
}

}  // namespace earlybird
