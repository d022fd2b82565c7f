// How long each thread computes in an iteration: the noise models of Temucin et al. 2022.
#pragma once

#include <vector>

#include "harness/request/request.hpp"

namespace earlybird {

// `none`: every thread computes for compute_s. `single`: one thread, drawn in each iteration, computes longer by
// `share`. `uniform`: each thread computes longer by `share` times a number drawn from [0, 1). `gaussian`: each thread's
// time is drawn from a normal distribution of mean compute_s and standard deviation share * compute_s; negative times are 0.
enum class NoiseModel { none, single, uniform, gaussian };

class Noise {
 public:
  Noise(NoiseModel model, double share, double compute_s, int seed)
      : model_(model), share_(share), compute_s_(compute_s), seed_(seed) {}

  double compute_s() const { return compute_s_; }

  // Seconds that each thread of `rank` computes in iteration `round`. Each thread has a random state of its own, which the
  // seed, the rank, its number and the round determine: equal arguments give equal times, and the times of a thread do not
  // depend on the number of threads, except with `single`.
  std::vector<double> times_s(int rank, int num_threads, int round) const;

 private:
  NoiseModel model_;
  double share_, compute_s_;
  int seed_;
};

// The noise that the keys compute_s, noise and noise_share of `point` request; ends the program with a message if one of
// them is invalid.
Noise read_noise(const Point &point, int seed);

}  // namespace earlybird
