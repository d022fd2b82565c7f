// The straight line by which one clock's readings become another's. Knows no MPI.
#pragma once

#include <vector>

namespace earlybird {

// One exchange: the own clock halfway between question and answer, the other clock at the answer, and how long the
// exchange took. The two readings are of moments no further apart than half of that (Cristian 1989).
struct ClockPoint {
  double own_s;
  double other_s;
  double round_trip_s;
};

struct ClockLine {
  double at_s = 0;      // on the own clock
  double offset_s = 0;  // of the other clock from the own then
  double drift = 0;     // seconds that the other gains in one of the own

  double other_s(double own_s) const { return own_s + (offset_s + drift * (own_s - at_s)); }
};

// The exchange that says most: the one with the shortest round trip. Of one point or more.
ClockPoint shortest(const std::vector<ClockPoint> &points);

// The mean round trip, weighed as fit_clock_line() weighs: half of it is how far off the mean of the offsets can be. Of
// one point or more.
double mean_round_trip_s(const std::vector<ClockPoint> &points);

// Least squares over one point or more, each weighed by what it can be wrong: 1 / round trip squared. Points of a single
// moment give no drift.
ClockLine fit_clock_line(const std::vector<ClockPoint> &points);

}  // namespace earlybird
