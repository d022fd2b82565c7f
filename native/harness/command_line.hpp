// The arguments every kernel takes: --plan F --out F [--pattern F] and the stop rule's numbers.
#pragma once

#include <string>

#include "harness/stop_rule.hpp"

namespace earlybird {

struct CommandLine {
  std::string plan;
  std::string out;
  std::string pattern;
  StopRules rules;
};

// Reads the arguments; ends the program with a sentence when one is unknown or lacks its value.
CommandLine read_command_line(int argc, char **argv);

// Prints one sentence on stderr and ends the program with status 2. Called alike on every rank, so none is left waiting.
[[noreturn]] void refuse(const std::string &sentence);

}  // namespace earlybird
