// Our own broadcast: down any tree, in segments, each forwarded as soon as it has arrived.
#pragma once

#include "harness/team/team.hpp"
#include "kernels/collectives/algorithms/algorithm.hpp"
#include "kernels/collectives/parts/requests.hpp"
#include "kernels/collectives/parts/segments.hpp"
#include "kernels/collectives/parts/tree.hpp"

namespace earlybird {

class TreeBcast : public Algorithm {
 public:
  TreeBcast(Team &team, MPI_Comm comm, Tree tree, Segments segments, std::byte *data);
  void run() override;

 private:
  void receive(std::size_t k);

  static constexpr int tag = 23;

  Team &team_;
  MPI_Comm comm_;
  Tree tree_;
  Segments segments_;
  std::byte *data_;
  Requests receives_, sends_;
};

}  // namespace earlybird
