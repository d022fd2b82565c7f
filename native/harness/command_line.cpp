// Reads --name value pairs.
#include "harness/command_line.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace earlybird {

void refuse(const std::string &sentence) {
  std::fprintf(stderr, "earlybird kernel: %s\n", sentence.c_str());
  std::exit(2);
}

namespace {

// A larger number is a typing error: no socket has so many cores.
constexpr int max_threads = 1024;

int thread_count(const std::string &text) {
  char *end = nullptr;
  const long count = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || count < 1 || count > max_threads)
    refuse("--threads is " + text + "; give 1 to " + std::to_string(max_threads) + " threads per rank");
  return static_cast<int>(count);
}

std::vector<std::string> split(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> items;
  for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
  return items;
}

}  // namespace

CommandLine read_command_line(int argc, char **argv) {
  CommandLine line;
  for (int k = 1; k < argc; k += 2) {
    const std::string name = argv[k];
    if (k + 1 == argc) refuse("the argument " + name + " needs a value");
    const std::string value = argv[k + 1];
    if (name == "--plan") line.plan = value;
    else if (name == "--out") line.out = value;
    else if (name == "--pattern") line.pattern = value;
    else if (name == "--methods") line.methods = split(value);
    else if (name == "--settings") line.kernel_options = value;
    else if (name == "--threads") line.threads = thread_count(value);
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
