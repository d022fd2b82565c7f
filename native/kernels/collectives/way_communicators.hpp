// A communicator for each way, born with the control variables that force it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/command_line.hpp"
#include "harness/control_variables.hpp"
#include "harness/duplicate.hpp"
#include "harness/settings.hpp"
#include "harness/team.hpp"

namespace earlybird {

// What one way sets another does not inherit: a variable that the settings give for some ways has for the others the
// value that it had before, and again when all communicators are made.
class WayCommunicators {
 public:
  // Collective, as is the end.
  WayCommunicators(Team &team, const CommandLine &line);

  MPI_Comm of(std::size_t way) const { return all_[way]->comm(); }

  // Before a call of `way`, outside of what is timed: writes the variables that act on calls, where another way was
  // called last.
  void begin(std::size_t way);

 private:
  Assignments complete(Assignments WaySettings::*when);
  void write(const Assignments &assignments, std::size_t way);
  std::string whose(std::size_t way) const { return "the settings of the way " + ways_[way]; }

  const std::vector<std::string> ways_;
  std::unique_ptr<ControlVariables> variables_;  // none where no settings are given
  std::vector<WaySettings> settings_;            // of each way
  std::vector<std::unique_ptr<Duplicate>> all_;
  std::size_t last_;
};

}  // namespace earlybird
