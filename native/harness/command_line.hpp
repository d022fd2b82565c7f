// The arguments every kernel takes: --plan F --out F [--pattern F] [--methods A,B] [--settings F]
// [--threads T] and the stop rule's numbers.
#pragma once

#include <string>
#include <vector>

#include "harness/stop_rule.hpp"

namespace earlybird {

struct CommandLine {
  std::string plan;
  std::string out;
  std::string pattern;
  std::vector<std::string> methods;  // to measure side by side at every point, where a kernel knows several
  std::string settings;           // a file that tells which control variables force each method; empty where none do
  int threads = 1;                // of every rank
  StopRules rules;
};

// Reads the arguments; ends the program with a sentence when one is unknown, lacks its value or is out of range. Comes
// before MPI starts, which has to be told how many threads will call it.
CommandLine read_command_line(int argc, char **argv);

// Prints one sentence on stderr and ends the program with status 2. Called alike on every rank, so none is left waiting.
[[noreturn]] void refuse(const std::string &sentence);

}  // namespace earlybird
