// Reads integers from text.
#pragma once

#include <optional>
#include <string>

namespace earlybird {

// The integer that all of `text` spells, without a plus sign; empty if there is none or it needs more than 64 bits.
std::optional<long long> read_integer(const std::string &text);

}  // namespace earlybird
