// The computation of the threads of a rank beyond that of its cells: as long as a point requests, with its noise.
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
    if (noise_.compute_s() <= 0) return;
    for (int k = 0; k < count; ++k) times_s_.push_back(noise_.times_s(team_.rank(), static_cast<int>(works_.size()), first + k));
  }
  // Until the next `draw`, computations take no time.
  void draw_nothing() { times_s_.clear(); }
  // The following computation is the `k`-th of those drawn.
  void select(int k) { selected_ = static_cast<std::size_t>(k); }

  // Returns when `share` of the thread's time, which began at `begin_s`, is over.
  void finish(int thread, double begin_s, double share) {
    const auto k = static_cast<std::size_t>(thread);
    if (!times_s_.empty()) works_[k].until(begin_s + times_s_[selected_][k] * share, team_.oversubscribed());
  }

 private:
  const Team &team_;
  const Noise noise_;
  std::vector<Work> works_;
  std::vector<std::vector<double>> times_s_;  // by computation, then by thread
  std::size_t selected_ = 0;
};

}  // namespace earlybird
