// One generator per rank, thread and round.
#include "kernels/computing/noise.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

constexpr int all_threads = -1;  // in the place of a thread: what concerns the threads together

const std::map<std::string, NoiseModel> models = {
    {"none", NoiseModel::none},
    {"single", NoiseModel::single},
    {"uniform", NoiseModel::uniform},
    {"gaussian", NoiseModel::gaussian},
};

std::mt19937_64 generator_of(int seed, int rank, int thread, int round) {
  std::seed_seq seeds{seed, rank, thread, round};
  return std::mt19937_64(seeds);
}

}  // namespace

std::vector<double> Noise::times_s(int rank, int num_threads, int round) const {
  std::vector<double> times_s(static_cast<std::size_t>(num_threads), compute_s_);
  if (model_ == NoiseModel::single) {
    std::mt19937_64 generator = generator_of(seed_, rank, all_threads, round);
    const int late = std::uniform_int_distribution<int>(0, num_threads - 1)(generator);
    times_s[static_cast<std::size_t>(late)] += share_ * compute_s_;
    return times_s;
  }
  for (int thread = 0; model_ != NoiseModel::none && thread < num_threads; ++thread) {
    std::mt19937_64 generator = generator_of(seed_, rank, thread, round);
    double &time_s = times_s[static_cast<std::size_t>(thread)];
    if (model_ == NoiseModel::uniform) {
      time_s += share_ * compute_s_ * std::uniform_real_distribution<double>(0, 1)(generator);
    } else if (share_ > 0) {
      time_s *= std::max(std::normal_distribution<double>(1, share_)(generator), 0.0);
    }
  }
  return times_s;
}

Noise read_noise(const Point &point, int seed) {
  const auto known = models.find(point.text("noise"));
  if (known == models.end()) refuse("the request gives noise=" + point.text("noise") + "; give one of " + names_of(models));
  return {known->second, point.not_negative("noise_share"), point.not_negative("compute_s"), seed};
}

}  // namespace earlybird
