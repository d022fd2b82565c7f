// The settings file: which control variables force each way.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace earlybird {

using Assignments = std::map<std::string, std::string>;  // value by name

struct WaySettings {
  Assignments at_birth;  // while the way's communicator is made, which keeps them
  Assignments at_call;   // whenever the way is called: they act at once, on any communicator
};

// Reads lines `WAY NAME=VALUE ...` and `WAY @call NAME=VALUE ...`. Ends the program with a sentence where a line is
// neither or its way is not among `ways`.
std::map<std::string, WaySettings> read_settings(const std::string &path, const std::vector<std::string> &ways);

}  // namespace earlybird
