// The state of the chain is a member that every portion reads and writes through a volatile access: no part is removed.
#include "harness/machine/work.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>

#include "harness/machine/clock.hpp"

namespace earlybird {

namespace {
constexpr double portion_s = 1e-6, calibration_s = 1e-3;
constexpr std::int64_t first_steps = 1024;
constexpr std::uint64_t factor = 6364136223846793005u, summand = 1442695040888963407u;  // Knuth's, of full period
}  // namespace

void Work::compute(std::int64_t num_steps) {
  std::uint64_t value = *static_cast<volatile std::uint64_t *>(&value_);
  for (std::int64_t k = 0; k < num_steps; ++k) value = value * factor + summand;
  *static_cast<volatile std::uint64_t *>(&value_) = value;
}

void Work::calibrate() {
  if (clock_is_global()) return;
  prctl(PR_SET_TIMERSLACK, 1);  // Linux wakes a sleeping thread up to 50 us late otherwise
  // The first half raises the core's clock rate.
  for (int half = 0; half < 2; ++half) {
    const double begin_s = now_s();
    std::int64_t num_steps = 0;
    double spent_s = 0;
    while ((spent_s = now_s() - begin_s) < calibration_s) {
      compute(first_steps);
      num_steps += first_steps;
    }
    steps_per_s_ = static_cast<double>(num_steps) / spent_s;
  }
  portion_steps_ = std::max<std::int64_t>(1, std::llround(steps_per_s_ * portion_s));
}

void Work::until(double due_s, bool asleep) {
  if (asleep || clock_is_global()) {
    sleep_until(due_s);
    return;
  }
  while (now_s() < due_s) compute(portion_steps_);
}

}  // namespace earlybird
