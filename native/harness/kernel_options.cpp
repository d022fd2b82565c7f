// Parses the lines of the kernel options file.
#include "harness/kernel_options.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "harness/command_line.hpp"

namespace earlybird {

std::map<std::string, MethodOptions> read_kernel_options(const std::string &path,
                                                         const std::vector<std::string> &methods) {
  std::ifstream file(path);
  if (!file) refuse("cannot read the kernel options " + path);
  std::map<std::string, MethodOptions> kernel_options;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    std::string method;
    if (!(stream >> method)) continue;
    if (std::find(methods.begin(), methods.end(), method) == methods.end())
      refuse("the kernel options contain the method " + method + ", which is not in --methods");
    MethodOptions &options = kernel_options[method];
    Assignments *assignments = &options.at_creation;
    bool first = true;
    for (std::string argument; stream >> argument; first = false) {
      if (first && argument == "@call") {
        assignments = &options.at_call;
        continue;
      }
      const std::size_t equals = argument.find('=');
      if (equals == std::string::npos || equals == 0)
        refuse("the kernel options of the method " + method + " contain '" + argument + "'; give NAME=VALUE");
      (*assignments)[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
  }
  return kernel_options;
}

}  // namespace earlybird
