// Our own reduction: up any tree, in segments, each forwarded as soon as the children's segments are added.
#pragma once

#include <vector>

#include "harness/messages/buffer.hpp"
#include "harness/team/team.hpp"
#include "kernels/collectives/algorithms/algorithm.hpp"
#include "kernels/collectives/parts/requests.hpp"
#include "kernels/collectives/parts/segments.hpp"
#include "kernels/collectives/parts/summands.hpp"
#include "kernels/collectives/parts/tree.hpp"

namespace earlybird {

// The reverse of the broadcast down the same tree: the last child in sending order, which has the smallest subtree, is
// added first. All receives are posted in advance, but the sums are added in this fixed order, not in the order of
// arrival. The result is then bitwise reproducible, as the standard strongly recommends (MPI 4.1, 6.9.1) and MPIs ensure,
// and the first child's sum needs no copy.
class TreeReduce : public Algorithm {
 public:
  // `own` is this rank's contribution, `result` the root's buffer for the sum.
  TreeReduce(Team &team, MPI_Comm comm, Tree tree, Segments segments, const Summands &summands, const std::byte *own,
             std::byte *result);
  void run() override;

 private:
  void receive(std::size_t k);
  const std::byte *sum_up(std::size_t k);

  static constexpr int tag = 29;

  Team &team_;
  MPI_Comm comm_;
  Tree tree_;
  Segments segments_;
  Summands summands_;
  const std::byte *own_;
  std::vector<Buffer> memory_;
  std::vector<std::byte *> received_;  // from each child; the first one becomes the sum
  Requests receives_, sends_;
};

}  // namespace earlybird
