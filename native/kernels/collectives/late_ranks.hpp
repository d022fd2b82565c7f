// Portable verification that an algorithm ran: each rank in turn is late, and the ranks that wait for it also finish late.
#pragma once

#include <vector>

#include "harness/sampling/sampler.hpp"
#include "harness/team/team.hpp"

namespace earlybird {

// At most `max_ranks` of `num_ranks` ranks, evenly spread and including rank 0.
std::vector<int> spread_ranks(int num_ranks, int max_ranks);

// Copies of `operations` in which rank late[k] is `delay_s` late in round k: one iteration per element of `late`, keeping
// the times of all ranks.
std::vector<Operation> with_late_ranks(const std::vector<Operation> &operations, const Team &team, const std::vector<int> &late,
                                       double delay_s);

}  // namespace earlybird
