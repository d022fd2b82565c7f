// The kernel options file: the control variables that select each method.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace earlybird {

using Assignments = std::map<std::string, std::string>;  // value by name

struct MethodOptions {
  Assignments at_creation;  // set while the method's communicator is created; the communicator keeps them
  Assignments at_call;   // set before each call of the method; they take effect immediately, on any communicator
};

// Reads lines `METHOD NAME=VALUE ...` and `METHOD @call NAME=VALUE ...`. Ends the program with a message if a line is
// neither or its method is not in `methods`.
std::map<std::string, MethodOptions> read_kernel_options(const std::string &path,
                                                         const std::vector<std::string> &methods);

}  // namespace earlybird
