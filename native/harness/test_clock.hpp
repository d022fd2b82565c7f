// Clocks that tests give the nodes: EARLYBIRD_TEST_CLOCK=OFFSET_S:DRIFT,... , one for each node. There is one machine to
// test on, and all of it reads one clock.
#pragma once

#include <vector>

namespace earlybird {

struct TestClock {
  double offset_s;
  double drift;
};

// One per node; none where the variable is not set. Ends the program with a sentence where it cannot be read.
std::vector<TestClock> test_clocks();

}  // namespace earlybird
