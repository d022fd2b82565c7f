// Takes the place of control_variables.cpp where the MPI has no tool interface (MPI_T).
#include "harness/command_line.hpp"
#include "harness/control_variables.hpp"
#include "harness/json.hpp"

namespace earlybird {

struct ControlVariables::Variable {};

std::string threshold_variables() { return JsonObject().str(); }

ControlVariables::ControlVariables() {
  refuse("this MPI has no tool interface (MPI_T), through which control variables are written; leave --settings out");
}

ControlVariables::~ControlVariables() = default;

// Never called: there is no object to call them of.
std::string ControlVariables::read(const std::string &, const std::string &) { return ""; }

void ControlVariables::write(const std::string &, const std::string &, const std::string &) {}

}  // namespace earlybird
