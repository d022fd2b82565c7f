// Weighted least squares of the offset, about the weighted mean: otherwise clocks that started years apart would leave
// few significant digits.
#include "harness/clocks/clock_line.hpp"

#include <algorithm>

namespace earlybird {

namespace {

// A round trip below the clock resolution gets the weight of one at the resolution.
constexpr double min_round_trip_s = 1e-9;

double weight(const ClockPoint &point) {
  const double round_trip_s = std::max(point.round_trip_s, min_round_trip_s);
  return 1 / (round_trip_s * round_trip_s);
}

}  // namespace

ClockPoint shortest(const std::vector<ClockPoint> &points) {
  return *std::min_element(points.begin(), points.end(),
                           [](const ClockPoint &a, const ClockPoint &b) { return a.round_trip_s < b.round_trip_s; });
}

double mean_round_trip_s(const std::vector<ClockPoint> &points) {
  double total = 0, sum_s = 0;
  for (const ClockPoint &point : points) {
    total += weight(point);
    sum_s += weight(point) * point.round_trip_s;
  }
  return sum_s / total;
}

ClockLine fit_clock_line(const std::vector<ClockPoint> &points) {
  // Relative to the first point, so that sums of large readings keep their precision.
  const double first_own_s = points.front().own_s;
  const double first_offset_s = points.front().other_s - first_own_s;
  double total = 0, sum_x = 0, sum_y = 0;
  for (const ClockPoint &point : points) {
    total += weight(point);
    sum_x += weight(point) * (point.own_s - first_own_s);
    sum_y += weight(point) * (point.other_s - point.own_s - first_offset_s);
  }
  const double mean_x = sum_x / total, mean_y = sum_y / total;
  double xx = 0, xy = 0;
  for (const ClockPoint &point : points) {
    const double x = point.own_s - first_own_s - mean_x;
    xx += weight(point) * x * x;
    xy += weight(point) * x * (point.other_s - point.own_s - first_offset_s - mean_y);
  }
  return {first_own_s + mean_x, first_offset_s + mean_y, xx > 0 ? xy / xx : 0};
}

}  // namespace earlybird
