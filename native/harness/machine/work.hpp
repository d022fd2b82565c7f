// Computation that takes a given time and that neither a compiler nor a changing clock rate of the core can shorten.
#pragma once

#include <cstdint>

namespace earlybird {

// The computation of one thread: a chain of dependent multiplications, in portions of a microsecond. It ends by the clock,
// so a core that becomes faster computes more, and not for a shorter time. Each in a cache line of its own, because its thread
// writes it all the time.
class alignas(64) Work {
 public:
  // Determines the rate of the calling thread, which takes 2 ms. A simulated clock does not advance meanwhile: the rate is
  // then 0.
  void calibrate();
  double steps_per_s() const { return steps_per_s_; }

  // Returns when now_s() has reached `due_s`. Computes until then, or sleeps if `asleep`, because a computation on a core
  // that threads share would take longer, and would keep the receiver from its core.
  void until(double due_s, bool asleep);

  // A chain of `num_steps` multiplications, for comparing cores.
  void compute(std::int64_t num_steps);

 private:
  double steps_per_s_ = 0;
  std::int64_t portion_steps_ = 1;
  std::uint64_t value_ = 1;
};

}  // namespace earlybird
