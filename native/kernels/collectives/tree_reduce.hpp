// Our own reduction: up any tree, in segments, each handed on as soon as the children's are added.
#pragma once

#include <vector>

#include "harness/buffer.hpp"
#include "harness/team.hpp"
#include "kernels/collectives/algorithm.hpp"
#include "kernels/collectives/requests.hpp"
#include "kernels/collectives/segments.hpp"
#include "kernels/collectives/summands.hpp"
#include "kernels/collectives/tree.hpp"

namespace earlybird {

// The broadcast down the same tree run backwards: whom a rank would send to last, and who so has the least below it, is
// added first. All receives are posted before, yet sums are added up in that one order, not as messages come: the same
// ranks then get the same result to the last bit each time, as the standard strongly recommends (MPI 4.1, 6.9.1) and
// MPIs do, and the first child's sum needs no copy.
class TreeReduce : public Algorithm {
 public:
  // `own` is this rank's contribution, `result` where the root gets the sum.
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
  std::vector<std::byte *> received_;  // from each child; the first one's becomes the sum
  Requests receives_, sends_;
};

}  // namespace earlybird
