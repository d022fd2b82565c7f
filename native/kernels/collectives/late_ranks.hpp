// The portable proof that an algorithm ran: one rank after the other is late, and who waits for it finishes late too.
#pragma once

#include <vector>

#include "harness/sampler.hpp"
#include "harness/team.hpp"

namespace earlybird {

// At most `most` ranks of `num_ranks`, evenly spread and with rank 0.
std::vector<int> spread_ranks(int num_ranks, int most);

// `operations` of which in round k rank late[k] calls `delay_s` late: one iteration for each of `late`, the time of every
// rank kept.
std::vector<Operation> with_late_ranks(const std::vector<Operation> &operations, const Team &team,
                                       const std::vector<int> &late, double delay_s);

}  // namespace earlybird
