// The command-line arguments of every kernel: --plan F --out F [--pattern F] [--methods A,B] [--kernel_options F]
// [--threads T] and the parameters of the stop rule.
#pragma once

#include <string>
#include <vector>

#include "harness/stop_rule.hpp"

namespace earlybird {

struct CommandLine {
  std::string plan;
  std::string out;
  std::string pattern;
  std::vector<std::string> methods;  // to measure interleaved at every point, if a kernel has several
  std::string kernel_options;  // file with the control variables that select each method; may be empty
  int threads = 1;             // per rank
  StopRules rules;
};

// Reads the arguments; ends the program with a message if one is unknown, has no value or is out of range. Called before
// MPI_Init_thread, which needs to know whether several threads call MPI.
CommandLine read_command_line(int argc, char **argv);

// Prints one sentence on stderr and ends the program with status 2. Every rank calls it, so no rank is left waiting.
[[noreturn]] void refuse(const std::string &sentence);

}  // namespace earlybird
