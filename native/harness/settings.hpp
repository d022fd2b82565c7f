// The settings file: which control variables force each method.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace earlybird {

using Assignments = std::map<std::string, std::string>;  // value by name

struct MethodSettings {
  Assignments at_birth;  // while the method's communicator is made, which keeps them
  Assignments at_call;   // whenever the method is called: they act at once, on any communicator
};

// Reads lines `METHOD NAME=VALUE ...` and `METHOD @call NAME=VALUE ...`. Ends the program with a sentence where a line is
// neither or its method is not among `methods`.
std::map<std::string, MethodSettings> read_settings(const std::string &path, const std::vector<std::string> &methods);

}  // namespace earlybird
