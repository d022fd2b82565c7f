// A pattern file: refused, or all messages are between the ranks of the launch and none is lost.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "fuzz/refusing.hpp"
#include "harness/request/pattern.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace earlybird;
  constexpr int num_ranks = 4;
  std::istringstream stream(std::string(data, data + size));
  std::size_t taken = 0;
  try {
    read_pattern(stream, num_ranks, [&](const PatternMessage &message) {
      if (message.number != static_cast<std::int64_t>(taken++) || message.source < 0 || message.source >= num_ranks ||
          message.destination < 0 || message.destination >= num_ranks || message.size_bytes < 0)
        std::abort();
    });
    if (taken * 3 * sizeof(std::int64_t) != size) std::abort();
  } catch (const Refused &refused) {
    if (refused.sentence.empty()) std::abort();
  }
  return 0;
}
