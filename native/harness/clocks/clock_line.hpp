// The straight line that converts the readings of one clock to those of another. Independent of MPI.
#pragma once

#include <vector>

namespace earlybird {

// One exchange: the own clock halfway between request and reply, the other clock at the reply, and the duration of the
// exchange. The two readings are at most half of this duration apart (Cristian 1989).
struct ClockPoint {
  double own_s;
  double other_s;
  double round_trip_s;
};

struct ClockLine {
  double at_s = 0;      // time on the own clock
  double offset_s = 0;  // other clock minus own clock at that time
  double drift = 0;     // seconds that the other clock gains per second of the own

  double other_s(double own_s) const { return own_s + (offset_s + drift * (own_s - at_s)); }
};

// The most accurate exchange: the one with the shortest round trip. Requires at least one point.
ClockPoint shortest(const std::vector<ClockPoint> &points);

// The mean round trip, weighted as in fit_clock_line(): half of it bounds the error of the mean offset. Requires at least
// one point.
double mean_round_trip_s(const std::vector<ClockPoint> &points);

// Least squares over at least one point, each with the weight 1 / round trip squared. The drift is 0 if all points have
// the same time.
ClockLine fit_clock_line(const std::vector<ClockPoint> &points);

}  // namespace earlybird
