// Our own scatter.
#include "kernels/collectives/scatter.hpp"

#include "kernels/collectives/linear_blocks.hpp"

namespace earlybird {

std::map<std::string, Collective::Maker> Scatter::own_algorithms() {
  return {{"own-linear", [this](const MethodName &, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
             return std::make_unique<LinearBlocks>(shape_.team, comm, LinearBlocks::Direction::from_root, shape_.root,
                                                   shape_.size_bytes, in_.data(), out_.data());
           }}};
}

}  // namespace earlybird
