// Time stamps, and the resolution and cost of now_s().
#include "harness/machine/clock.hpp"

#include <time.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace earlybird {

namespace {
double stamp_offset_s = 0, stamp_drift = 0;
}

double stamp_s() {
  const double time_s = now_s();
  return time_s + (stamp_offset_s + stamp_drift * time_s);
}

double wall_s() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const double time_s = static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  return time_s + (stamp_offset_s + stamp_drift * now_s());
}

void set_stamp_clock(double offset_s, double drift) {
  stamp_offset_s = offset_s;
  stamp_drift = drift;
}

ClockQuality measure_clock() {
  constexpr int num_readings = 2000;
  std::vector<double> reading(num_readings);
  for (double &r : reading) r = now_s();

  std::vector<double> step(num_readings - 1);
  double resolution_s = std::numeric_limits<double>::infinity();
  for (int k = 0; k + 1 < num_readings; ++k) {
    step[k] = reading[k + 1] - reading[k];
    if (step[k] > 0.0) resolution_s = std::min(resolution_s, step[k]);
  }
  std::nth_element(step.begin(), step.begin() + step.size() / 2, step.end());
  // A simulated clock does not advance while it is read; it is exact.
  if (resolution_s == std::numeric_limits<double>::infinity()) resolution_s = 0.0;
  return {resolution_s, step[step.size() / 2]};
}

}  // namespace earlybird
