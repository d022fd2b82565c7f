// The location that a rank reports: refused, or written again it is the same text but for blanks.
#include "harness/team/location.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/refusing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace earlybird;
  try {
    const std::string text = to_text(read_location(std::string(data, data + size)));
    if (to_text(read_location(text)) != text) std::abort();
  } catch (const Refused &refused) {
    if (refused.sentence.empty()) std::abort();
  }
  return 0;
}
