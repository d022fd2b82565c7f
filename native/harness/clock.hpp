// The clock, of this machine or of a simulated one, and what it can resolve.
#pragma once

namespace earlybird {

// Seconds since an arbitrary start; ranks of one node share the start.
double now_s();

// What now_s() reads, for moments that are compared with those of other ranks. The two differ only where tests pretend
// that nodes have clocks of their own (test_clock.hpp); time limits and sleeps always go by now_s().
double stamp_s();

// From now on stamp_s() is `offset_s` + (1 + `drift`) * now_s().
void set_stamp_clock(double offset_s, double drift);

// Whether ranks of all nodes read one clock, as they do in a simulation.
bool clock_is_global();

// Leaves the core until now_s() reaches `time_s`; at once where it has.
void sleep_until(double time_s);

struct ClockQuality {
  double resolution_s;  // smallest step seen between two different readings; 0 of an exact, simulated clock
  double overhead_s;    // median cost of one reading
};

ClockQuality measure_clock();

}  // namespace earlybird
