// Copies the root's own block while messages are in flight.
#include "kernels/collectives/algorithms/linear_blocks.hpp"

#include <cstring>

namespace earlybird {

LinearBlocks::LinearBlocks(Team &team, MPI_Comm comm, Direction direction, int root, std::size_t block_bytes, std::byte *blocks,
                           std::byte *own)
    : team_(team), comm_(comm), direction_(direction), root_(root), block_bytes_(block_bytes), blocks_(blocks), own_(own) {
  requests_.reserve(static_cast<std::size_t>(team.size()));
}

void LinearBlocks::start(bool sends, std::byte *data, int peer) {
  const int count = static_cast<int>(block_bytes_);
  MPI_Request &request = requests_.emplace_back();
  if (sends) MPI_Isend(data, count, MPI_BYTE, peer, tag, comm_, &request);
  else MPI_Irecv(data, count, MPI_BYTE, peer, tag, comm_, &request);
}

void LinearBlocks::run() {
  const bool to_root = direction_ == Direction::to_root;
  requests_.clear();
  if (team_.rank() != root_) {
    start(to_root, own_, root_);
  } else {
    const auto block = [this](int r) { return blocks_ + static_cast<std::size_t>(r) * block_bytes_; };
    for (int v = 1; v < team_.size(); ++v) {
      const int peer = (root_ + v) % team_.size();
      start(!to_root, block(peer), peer);
    }
    if (to_root) std::memcpy(block(root_), own_, block_bytes_);
    else std::memcpy(own_, block(root_), block_bytes_);
  }
  team_.wait(requests_.data(), static_cast<int>(requests_.size()));
}

}  // namespace earlybird
