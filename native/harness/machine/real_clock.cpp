// Reads CLOCK_MONOTONIC and sleeps by it.
#include <time.h>

#include <cerrno>

#include "harness/machine/clock.hpp"

namespace earlybird {

double now_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

bool clock_is_global() { return false; }

void sleep_until(double time_s) {
  timespec t;
  t.tv_sec = static_cast<time_t>(time_s);
  t.tv_nsec = static_cast<long>((time_s - static_cast<double>(t.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) continue;
}

}  // namespace earlybird
