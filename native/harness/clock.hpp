// The monotonic clock and what it can resolve.
#pragma once

namespace earlybird {

// Seconds since an arbitrary start; ranks of one node share the start.
double now_s();

// Leaves the core until now_s() reaches `time_s`; at once where it has.
void sleep_until(double time_s);

struct ClockQuality {
  double resolution_s;  // smallest step seen between two different readings
  double overhead_s;    // median cost of one reading
};

ClockQuality measure_clock();

}  // namespace earlybird
