// Our own gather and scatter: one message between the root and each other rank, all in flight at the same time.
#pragma once

#include <vector>

#include "harness/team/team.hpp"
#include "kernels/collectives/algorithms/algorithm.hpp"

namespace earlybird {

class LinearBlocks : public Algorithm {
 public:
  enum class Direction { to_root, from_root };

  // `blocks` are the root's blocks of `block_bytes`, one per rank; `own` is this rank's own block.
  LinearBlocks(Team &team, MPI_Comm comm, Direction direction, int root, std::size_t block_bytes, std::byte *blocks,
               std::byte *own);
  void run() override;

 private:
  void start(bool sends, std::byte *data, int peer);

  static constexpr int tag = 31;

  Team &team_;
  MPI_Comm comm_;
  Direction direction_;
  int root_;
  std::size_t block_bytes_;
  std::byte *blocks_, *own_;
  std::vector<MPI_Request> requests_;
};

}  // namespace earlybird
