// What the sender's threads compute before a partition is ready: nothing but the last one is late, or all take a time
// that is drawn (Gillis et al. 2023, section 2.2.1 and appendix A).
#pragma once

#include <memory>

#include "harness/plan.hpp"
#include "kernels/methods/method.hpp"

namespace earlybird {

class Computation {
 public:
  // Where the last partition alone is computed, the others need not be asked: that would cost as much as readying them.
  explicit Computation(bool only_last) : only_last_(only_last) {}
  virtual ~Computation() = default;

  bool only_last() const { return only_last_; }

  // What stands for the computation in a sample: the delay asked for, or what a thread computes when there is no noise.
  virtual double asked_s() const = 0;

  // Outside of what is timed; methods that are compared compute alike in the same round.
  virtual void prepare(int round) = 0;
  virtual void begin() = 0;
  // On thread `thread`, until it may ready `partition`. Calls nothing of MPI, as a computation does not.
  virtual void compute(int thread, int partition) = 0;
  // How long the slowest thread computed since `begin`: what time-to-solution leaves out.
  virtual double slowest_s() const = 0;

 private:
  const bool only_last_;
};

// The one that `point` asks for; ends the program in a sentence when it asks for what cannot be.
std::unique_ptr<Computation> make_computation(const Point &point, const Transfer &transfer);

}  // namespace earlybird
