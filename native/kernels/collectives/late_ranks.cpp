// The late rank sleeps between the barrier and the call, so that it leaves its core to ranks that do not wait for it.
#include "kernels/collectives/late_ranks.hpp"

#include <algorithm>
#include <memory>

#include "harness/machine/clock.hpp"

namespace earlybird {

std::vector<int> spread_ranks(int num_ranks, int max_ranks) {
  const int count = std::min(num_ranks, max_ranks);
  std::vector<int> ranks;
  for (long long k = 0; k < count; ++k) ranks.push_back(static_cast<int>(k * num_ranks / count));
  return ranks;
}

std::vector<Operation> with_late_ranks(const std::vector<Operation> &operations, const Team &team, const std::vector<int> &late,
                                       double delay_s) {
  std::vector<Operation> delayed = operations;
  for (Operation &operation : delayed) {
    const auto num_begun = std::make_shared<std::size_t>(0);  // number of iterations of this operation
    operation.prepare = [num_begun, prepare = operation.prepare](int iteration) {
      prepare(iteration);
      ++*num_begun;
    };
    operation.run = [num_begun, late, delay_s, rank = team.rank(), run = operation.run] {
      if (late[*num_begun - 1] == rank) sleep_until(now_s() + delay_s);
      run();
    };
    operation.iterations = static_cast<int>(late.size());
    operation.keep_rank_times = true;
  }
  return delayed;
}

}  // namespace earlybird
