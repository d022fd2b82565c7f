// A communicator for each method, born with the control variables that force it.
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

// What one method sets another does not inherit: a variable that the settings give for some methods has for the others the
// value that it had before, and again when all communicators are made.
class MethodCommunicators {
 public:
  // Collective, as is the end.
  MethodCommunicators(Team &team, const CommandLine &line);

  MPI_Comm of(std::size_t method) const { return all_[method]->comm(); }

  // Before a call of `method`, outside of what is timed: writes the variables that act on calls, where another method was
  // called last.
  void begin(std::size_t method);

 private:
  Assignments complete(Assignments MethodSettings::*when);
  void write(const Assignments &assignments, std::size_t method);
  std::string whose(std::size_t method) const { return "the settings of the method " + methods_[method]; }

  const std::vector<std::string> methods_;
  std::unique_ptr<ControlVariables> variables_;  // none where no settings are given
  std::vector<MethodSettings> settings_;            // of each method
  std::vector<std::unique_ptr<Duplicate>> all_;
  std::size_t last_;
};

}  // namespace earlybird
