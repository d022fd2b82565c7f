// The computation of the sender's threads before a partition is ready: either only the last partition is delayed, or all
// partitions take random times (Gillis et al. 2023, section 2.2.1 and appendix A).
#pragma once

#include <memory>

#include "harness/request/request.hpp"
#include "kernels/methods/parts/transfer.hpp"

namespace earlybird {

class Computation {
 public:
  // If only the last partition is computed, `compute` is not called for the others: the call would cost as much as MPI_Pready.
  explicit Computation(bool only_last) : only_last_(only_last) {}
  virtual ~Computation() = default;

  bool only_last() const { return only_last_; }

  // The nominal time recorded in a sample: the requested delay, or the computation time of a thread without noise.
  virtual double requested_s() const = 0;

  // Outside the timed region; methods that are compared compute the same times in the same round.
  virtual void prepare(int round) = 0;
  virtual void begin() = 0;
  // Called on thread `thread`; returns when `partition` is computed. Does not call MPI.
  virtual void compute(int thread, int partition) = 0;
  // The computation time of the slowest thread since `begin`, which time-to-solution excludes.
  virtual double slowest_s() const = 0;

 private:
  const bool only_last_;
};

// The computation that `point` requests; ends the program with a message if the point is invalid.
std::unique_ptr<Computation> make_computation(const Point &point, const Transfer &transfer);

}  // namespace earlybird
