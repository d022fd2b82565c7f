// Test program: for every line "target t_quantile time time ..." prints the results of the stop rules.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "harness/sampling/stop_rule.hpp"

int main() {
  using namespace earlybird;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream stream(line);
    double target, t_quantile, time_s;
    stream >> target >> t_quantile;
    std::vector<double> times_s;
    while (stream >> time_s) times_s.push_back(time_s);
    const std::size_t warmup = warmup_count(times_s);
    const std::vector<double> steady(times_s.begin() + static_cast<std::ptrdiff_t>(warmup), times_s.end());
    const Interval interval = median_interval(steady);
    std::printf("%zu %.17g %.17g %.17g %.17g %d %d\n", warmup, interval.low, interval.high, median_relative_half_width(steady),
                student_t_relative_half_width(times_s, t_quantile), stop_median(times_s, target, 10),
                stop_paper(times_s, t_quantile, target));
  }
}
