// Reads CLOCK_MONOTONIC, sleeps by it, and measures its step and its cost.
#include "harness/clock.hpp"

#include <time.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace earlybird {

namespace {
double stamp_offset_s = 0, stamp_drift = 0;
}

double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double stamp_s() {
  const double time_s = now_s();
  return time_s + (stamp_offset_s + stamp_drift * time_s);
}

void set_stamp_clock(double offset_s, double drift) {
  stamp_offset_s = offset_s;
  stamp_drift = drift;
}

void sleep_until(double time_s) {
  timespec t;
  t.tv_sec = static_cast<time_t>(time_s);
  t.tv_nsec = static_cast<long>((time_s - static_cast<double>(t.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) continue;
}

ClockQuality measure_clock() {
  constexpr int num_readings = 2000;
  std::vector<double> reading(num_readings);
  for (double &r : reading) r = now_s();

  std::vector<double> step(num_readings - 1);
  double resolution_s = 1.0;
  for (int k = 0; k + 1 < num_readings; ++k) {
    step[k] = reading[k + 1] - reading[k];
    if (step[k] > 0.0) resolution_s = std::min(resolution_s, step[k]);
  }
  std::nth_element(step.begin(), step.begin() + step.size() / 2, step.end());
  return {resolution_s, step[step.size() / 2]};
}

}  // namespace earlybird
