// What a launch really was: library, clock, control variables, and where every rank was allowed to run.
#pragma once

#include <string>

#include "harness/team.hpp"

namespace earlybird {

// Collective. Marks the team oversubscribed when a node has more ranks than cores they may use, and returns on rank 0
// the record as one JSON object.
std::string record_launch(Team &team, int thread_level);

}  // namespace earlybird
