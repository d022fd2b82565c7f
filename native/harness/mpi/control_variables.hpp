// The MPI's control variables. Only this module uses MPI_T, which an MPI may not support.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace earlybird {

// The integer variables that may define protocol thresholds, as a JSON object; empty if there is no MPI_T.
std::string threshold_variables();

// Reads and writes variables by name. Each function ends the program with a message that mentions `source` if this MPI
// has no such variable, or the value is invalid, or the variable cannot be written now. Destroy the object before
// MPI_Finalize: Open MPI 5.0.11 needs MPI_T_finalize to be called first.
class ControlVariables {
 public:
  ControlVariables();
  ~ControlVariables();
  ControlVariables(const ControlVariables &) = delete;
  ControlVariables &operator=(const ControlVariables &) = delete;

  std::string read(const std::string &name, const std::string &source);
  void write(const std::string &name, const std::string &value, const std::string &source);

 private:
  struct Variable;
  Variable &find(const std::string &name, const std::string &source);

  std::map<std::string, std::unique_ptr<Variable>> variables_;
};

}  // namespace earlybird
