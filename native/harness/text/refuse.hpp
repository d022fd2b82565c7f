// Ends a kernel whose input is invalid.
#pragma once

#include <string>

namespace earlybird {

// Prints one sentence on stderr and ends the program with status 2. Every rank calls it, so no rank is left waiting.
[[noreturn]] void refuse(const std::string &sentence);

}  // namespace earlybird
