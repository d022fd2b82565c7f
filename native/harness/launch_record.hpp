// What a launch really was: library, clock, control variables, and where every rank and
// thread was allowed to run.
#pragma once

#include <string>

#include "harness/crew.hpp"
#include "harness/team.hpp"

namespace earlybird {

// Collective. Tells the team whether a node has more threads of ranks than cores they may use and whether all ranks
// read one clock, and returns on rank 0 the record as one JSON object.
std::string record_launch(Team &team, const Crew &crew, int thread_level);

// The name of MPI_THREAD_SINGLE and the others.
const char *thread_level_name(int thread_level);

}  // namespace earlybird
