// Our own gather and scatter: one message between the root and each of the others, all under way at once.
#pragma once

#include <vector>

#include "harness/team.hpp"
#include "kernels/collectives/algorithm.hpp"

namespace earlybird {

class LinearBlocks : public Algorithm {
 public:
  enum class Direction { to_root, from_root };

  // `blocks` is the root's row of one block of `block_bytes` per rank, `own` every rank's own block.
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
