// The MPI's control variables: the one place that knows MPI_T, which an MPI may lack.
#pragma once

#include <map>
#include <memory>
#include <string>

namespace earlybird {

// The whole-number variables that may tell where a protocol ends, as a JSON object; empty where there is no MPI_T.
std::string threshold_variables();

// Variables read and written by name. Each of these ends the program with a sentence about `whose` they are where this
// MPI has no such variable, or it holds no such value, or may not be written now. Give all up before MPI_Finalize: Open
// MPI 5.0.11 needs MPI_T_finalize to come first.
class ControlVariables {
 public:
  ControlVariables();
  ~ControlVariables();
  ControlVariables(const ControlVariables &) = delete;
  ControlVariables &operator=(const ControlVariables &) = delete;

  std::string read(const std::string &name, const std::string &whose);
  void write(const std::string &name, const std::string &value, const std::string &whose);

 private:
  struct Variable;
  Variable &find(const std::string &name, const std::string &whose);

  std::map<std::string, std::unique_ptr<Variable>> found_;
};

}  // namespace earlybird
