// Where the threads of a rank run, as text that ranks exchange.
#pragma once

#include <string>
#include <vector>

#include "harness/machine/cores.hpp"

namespace earlybird {

struct Location {
  std::string host;
  std::vector<std::vector<Cpu>> threads;  // the CPUs of each thread
};

// "host / cpu:socket:core cpu:socket:core / cpu:socket:core": a slash precedes the CPUs of each thread.
std::string to_text(const Location &location);

// The inverse; ends the program with a message if `text` has another form.
Location read_location(const std::string &text);

}  // namespace earlybird
