// Reads EARLYBIRD_TEST_CLOCK.
#include "harness/clocks/test_clock.hpp"

#include <cstdlib>
#include <sstream>
#include <string>

#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

bool read_clock(const std::string &item, TestClock &clock) {
  std::istringstream stream(item);
  char colon = 0;
  return stream >> clock.offset_s >> colon >> clock.drift && colon == ':' && stream.eof() && clock.drift > -1;
}

}  // namespace

std::vector<TestClock> test_clocks() {
  std::vector<TestClock> clocks;
  const char *text = std::getenv("EARLYBIRD_TEST_CLOCK");
  if (text == nullptr) return clocks;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    clocks.emplace_back();
    if (!read_clock(item, clocks.back()))
      refuse("EARLYBIRD_TEST_CLOCK is " + std::string(text) +
             "; give OFFSET_S:DRIFT for each node, such as 0:0,12.5:1e-5, or unset it: it is for tests only");
  }
  return clocks;
}

}  // namespace earlybird
