// Refuses what the functions of the C library would skip, cut off or saturate.
#include "harness/numbers.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <system_error>

namespace earlybird {

std::optional<long long> read_integer(const std::string &text) {
  long long value = 0;
  const char *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

// Not with from_chars, which reads floating-point numbers only from GCC 11 and Clang 20 on.
std::optional<double> read_number(const std::string &text) {
  if (text.empty() || text.find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  char *end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace earlybird
