// EARLYBIRD_TEST_CLOCK: refused, or every clock goes forward.
#include "harness/clocks/test_clock.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "fuzz/refusing.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  using namespace earlybird;
  setenv("EARLYBIRD_TEST_CLOCK", std::string(data, data + size).c_str(), 1);
  try {
    for (const TestClock &clock : test_clocks()) {
      if (!(clock.drift > -1)) std::abort();
    }
  } catch (const Refused &refused) {
    if (refused.sentence.empty()) std::abort();
  }
  return 0;
}
