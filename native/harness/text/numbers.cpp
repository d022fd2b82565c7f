// Refuses what the functions of the C library would skip, cut off or saturate.
#include "harness/text/numbers.hpp"

#include <charconv>
#include <system_error>

namespace earlybird {

std::optional<long long> read_integer(const std::string &text) {
  long long value = 0;
  const char *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace earlybird
