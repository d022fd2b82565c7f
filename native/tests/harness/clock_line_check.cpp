// Test program: for every line "own other round_trip own other round_trip ..." prints the line fitted to these exchanges,
// the shortest exchange, and the mean round trip.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "harness/clocks/clock_line.hpp"

int main() {
  using namespace earlybird;
  std::string text;
  while (std::getline(std::cin, text)) {
    std::istringstream stream(text);
    std::vector<ClockPoint> points;
    for (ClockPoint point; stream >> point.own_s >> point.other_s >> point.round_trip_s;) points.push_back(point);
    const ClockLine line = fit_clock_line(points);
    std::printf("%.17g %.17g %.17g %.17g %.17g\n", line.at_s, line.offset_s, line.drift, shortest(points).own_s,
                mean_round_trip_s(points));
  }
}
