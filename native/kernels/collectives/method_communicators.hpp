// A communicator for each method, created with the control variables that select the method.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/mpi/control_variables.hpp"
#include "harness/mpi/duplicate.hpp"
#include "harness/request/request.hpp"
#include "harness/team/team.hpp"

namespace earlybird {

// A method does not inherit variables from another: if the request sets a variable for some methods, it has its
// previous value for the other methods, and again after all communicators are created.
class MethodCommunicators {
 public:
  // Constructor and destructor are collective.
  MethodCommunicators(Team &team, const Request &request);

  MPI_Comm of(std::size_t method) const { return communicators_[method]->comm(); }

  // Call it before `method` runs, outside the timed region: writes the variables that take effect in calls, if the previous
  // call was of another method.
  void begin(std::size_t method);

 private:
  Assignments complete(Assignments MethodOptions::*when);
  void write(const Assignments &assignments, std::size_t method);
  std::string source(std::size_t method) const { return "the control variables of the method " + methods_[method]; }

  const std::vector<std::string> methods_;
  std::unique_ptr<ControlVariables> variables_;  // null if no method has control variables
  std::vector<MethodOptions> options_;           // by method
  std::vector<std::unique_ptr<Duplicate>> communicators_;
  std::size_t last_;
};

}  // namespace earlybird
