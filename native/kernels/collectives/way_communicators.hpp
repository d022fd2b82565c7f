// A communicator for each way: an MPI may tie to it which algorithm it runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/duplicate.hpp"
#include "harness/team.hpp"

namespace earlybird {

class WayCommunicators {
 public:
  // Collective, as is the end.
  WayCommunicators(Team &team, const std::vector<std::string> &ways) {
    for (std::size_t k = 0; k < ways.size(); ++k) all_.push_back(std::make_unique<Duplicate>(team.comm()));
  }

  MPI_Comm of(std::size_t way) const { return all_[way]->comm(); }

  // Before calls of `way`, outside of what is timed.
  void begin(std::size_t) {}

 private:
  std::vector<std::unique_ptr<Duplicate>> all_;
};

}  // namespace earlybird
