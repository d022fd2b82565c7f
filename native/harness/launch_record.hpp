// The record of a launch: library, clock, control variables, and the CPUs of every rank and thread.
#pragma once

#include <string>

#include "harness/team/crew.hpp"
#include "harness/team/team.hpp"

namespace earlybird {

// Collective. Sets in the team whether a node is oversubscribed and whether all ranks read one clock. Returns the record
// as a JSON object on rank 0.
std::string record_launch(Team &team, const Crew &crew, int thread_level);

// The name of a thread level such as MPI_THREAD_SINGLE.
const char *thread_level_name(int thread_level);

}  // namespace earlybird
