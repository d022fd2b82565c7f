// Simulated node clocks for tests: EARLYBIRD_TEST_CLOCK=OFFSET_S:DRIFT,... , one for each node, because a single test
// machine has only one clock.
#pragma once

#include <vector>

namespace earlybird {

struct TestClock {
  double offset_s;
  double drift;
};

// One per node; empty if the variable is not set. Ends the program with a message if it is invalid.
std::vector<TestClock> test_clocks();

}  // namespace earlybird
