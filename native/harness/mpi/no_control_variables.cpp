// Replaces control_variables.cpp if the MPI has no tool interface (MPI_T).
#include "harness/mpi/control_variables.hpp"
#include "harness/text/json.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

struct ControlVariables::Variable {};

std::string threshold_variables() { return JsonObject().str(); }

ControlVariables::ControlVariables() {
  refuse("this MPI has no tool interface (MPI_T), which is needed to set control variables; omit control_variables");
}

ControlVariables::~ControlVariables() = default;

// Never called, because the constructor ends the program.
std::string ControlVariables::read(const std::string &, const std::string &) { return ""; }

void ControlVariables::write(const std::string &, const std::string &, const std::string &) {}

}  // namespace earlybird
