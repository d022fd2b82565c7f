// The clock of this machine or of a simulated one, and its resolution.
#pragma once

namespace earlybird {

// Seconds since an arbitrary start; ranks of one node share the start.
double now_s();

// now_s() for times that are compared with those of other ranks. The two differ only if a test simulates nodes with
// different clocks (harness/clocks/test_clock.hpp); time limits and sleeps always use now_s().
double stamp_s();

// Seconds since 1970 by the node's clock, which NTP keeps; tests set it wrong as they do stamp_s().
double wall_s();

// Makes stamp_s() return `offset_s` + (1 + `drift`) * now_s(). wall_s() is then wrong by as much.
void set_stamp_clock(double offset_s, double drift);

// Whether the ranks of all nodes read the same clock, as in a simulation.
bool clock_is_global();

// Sleeps until now_s() reaches `time_s`; returns immediately if it has.
void sleep_until(double time_s);

struct ClockQuality {
  double resolution_s;  // smallest observed step between two different readings; 0 for an exact, simulated clock
  double overhead_s;    // median cost of one reading
};

ClockQuality measure_clock();

}  // namespace earlybird
