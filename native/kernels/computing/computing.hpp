// The computation of the threads of a rank: as long as a point requests, with its noise.
#pragma once

#include <vector>

#include "harness/machine/work.hpp"
#include "harness/team/crew.hpp"
#include "harness/team/team.hpp"
#include "kernels/computing/noise.hpp"

namespace earlybird {

class Computing {
 public:
  Computing(const Team &team, Crew &crew, const Noise &noise)
      : team_(team), noise_(noise), works_(static_cast<std::size_t>(crew.size())) {
    if (noise_.compute_s() > 0) crew.run([this](int thread) { works_[static_cast<std::size_t>(thread)].calibrate(); });
  }

  // Determines the times of the threads in `count` computations, those of `first` and the following numbers: equal numbers
  // have equal times.
  void draw(int first, int count) {
    times_s_.clear();
    for (int k = 0; k < count; ++k) times_s_.push_back(noise_.times_s(team_.rank(), static_cast<int>(works_.size()), first + k));
    selected_ = 0;
  }
  // Until the next `draw`, computations take no time.
  void draw_nothing() { times_s_.clear(); }
  // The following computation is the `k`-th of those drawn.
  void select(int k) { selected_ = static_cast<std::size_t>(k); }

  // Seconds of each thread in the selected computation.
  const std::vector<double> &times_s() const { return times_s_[selected_]; }
  // Steps of computation per second of each thread; 0 without computation.
  std::vector<double> steps_per_s() const {
    std::vector<double> rates;
    for (const Work &work : works_) rates.push_back(work.steps_per_s());
    return rates;
  }

  // Returns when `share` of the thread's time, which began at `begin_s`, is over. What a thread does between two shares, such
  // as sending, takes nothing away from them.
  void finish(int thread, double begin_s, double share) {
    const auto k = static_cast<std::size_t>(thread);
    if (noise_.compute_s() > 0 && !times_s_.empty()) works_[k].until(begin_s + times_s()[k] * share, team_.oversubscribed());
  }

 private:
  const Team &team_;
  const Noise noise_;
  std::vector<Work> works_;
  std::vector<std::vector<double>> times_s_;  // by computation, then by thread
  std::size_t selected_ = 0;
};

}  // namespace earlybird
