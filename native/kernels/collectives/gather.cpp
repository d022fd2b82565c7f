// Our own gather.
#include "kernels/collectives/gather.hpp"

#include "kernels/collectives/linear_blocks.hpp"

namespace earlybird {

std::map<std::string, Collective::Maker> Gather::own_algorithms() {
  return {{"own-linear", [this](const MethodName &, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
             return std::make_unique<LinearBlocks>(shape_.team, comm, LinearBlocks::Direction::to_root, shape_.root,
                                                   shape_.size_bytes, out_.data(), in_.data());
           }}};
}

}  // namespace earlybird
