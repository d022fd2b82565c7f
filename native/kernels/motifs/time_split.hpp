// How the time of a rank divides into computation, communication and waiting.
#pragma once

#include <vector>

#include "harness/machine/clock.hpp"

namespace earlybird {

// Threads add what they spend on computation, and on communication: packing, unpacking, and the calls that start or mark
// messages. The rest of the time of all threads is waiting, for messages, for each other or for the main thread. The times
// of a rank are means over its threads, so that the three add up to the time of the rank.
class TimeSplit {
 public:
  explicit TimeSplit(int num_threads) : threads_(static_cast<std::size_t>(num_threads)), times_s_(3) {}

  void begin() {
    for (Times &times : threads_) times = {};
    begin_s_ = now_s();
  }
  template <class Part>
  void compute(int thread, const Part &part) {
    const double since_s = now_s();
    part();
    threads_[static_cast<std::size_t>(thread)].compute_s += now_s() - since_s;
  }
  template <class Part>
  void communicate(int thread, const Part &part) {
    const double since_s = now_s();
    part();
    threads_[static_cast<std::size_t>(thread)].communication_s += now_s() - since_s;
  }
  void end() {
    const double time_s = now_s() - begin_s_;
    double compute_s = 0, communication_s = 0;
    for (const Times &times : threads_) {
      compute_s += times.compute_s / static_cast<double>(threads_.size());
      communication_s += times.communication_s / static_cast<double>(threads_.size());
    }
    times_s_ = {compute_s, communication_s, time_s - compute_s - communication_s};
  }

  // Of the last step: computation, communication, waiting.
  const std::vector<double> &times_s() const { return times_s_; }

 private:
  struct alignas(64) Times {
    double compute_s = 0, communication_s = 0;
  };

  std::vector<Times> threads_;
  double begin_s_ = 0;
  std::vector<double> times_s_;
};

}  // namespace earlybird
