// Reads --name value pairs.
#include "harness/command_line.hpp"

#include <cstdio>
#include <cstdlib>

namespace earlybird {

void refuse(const std::string &sentence) {
  std::fprintf(stderr, "earlybird kernel: %s\n", sentence.c_str());
  std::exit(2);
}

CommandLine read_command_line(int argc, char **argv) {
  CommandLine line;
  for (int k = 1; k < argc; k += 2) {
    const std::string name = argv[k];
    if (k + 1 == argc) refuse("the argument " + name + " lacks its value");
    const std::string value = argv[k + 1];
    if (name == "--plan") line.plan = value;
    else if (name == "--out") line.out = value;
    else if (name == "--pattern") line.pattern = value;
    else if (name == "--mode") line.rules.mode = value;
    else if (name == "--target") line.rules.target = std::atof(value.c_str());
    else if (name == "--budget-s") line.rules.budget_s = std::atof(value.c_str());
    else if (name == "--min-iterations") line.rules.min_iterations = std::atoi(value.c_str());
    else if (name == "--paper-iterations") line.rules.paper_iterations = std::atoi(value.c_str());
    else if (name == "--paper-retries") line.rules.paper_retries = std::atoi(value.c_str());
    else if (name == "--t-quantile") line.rules.t_quantile = std::atof(value.c_str());
    else refuse("the argument " + name + " is unknown");
  }
  if (line.plan.empty() || line.out.empty()) refuse("give --plan FILE and --out FILE");
  return line;
}

}  // namespace earlybird
