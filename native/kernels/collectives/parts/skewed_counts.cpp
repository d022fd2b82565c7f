// Finds the factor by bisection, then rounds cumulative sums, so that the sum of all counts is exact.
#include "kernels/collectives/parts/skewed_counts.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "harness/messages/data_check.hpp"

namespace earlybird {

namespace {

// 1 + factor + factor^2 + ..., `count` terms.
double geometric_sum(double factor, int count) {
  double sum = 0, term = 1;
  for (int k = 0; k < count; ++k, term *= factor) sum += term;
  return sum;
}

// The factor between 0 and 1 for which the largest of `num_blocks` blocks is `skew` times the mean.
double falling_factor(int num_blocks, double skew) {
  if (skew <= 1) return 1;
  double low = 0, high = 1;
  constexpr int num_halvings = 60;
  for (int k = 0; k < num_halvings; ++k) {
    const double middle = (low + high) / 2;
    (geometric_sum(middle, num_blocks) < num_blocks / skew ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

std::vector<int> permutation(int count, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int k = count - 1; k > 0; --k) {
    const std::uint64_t word = content_key(k, count, 0) ^ (seed + 1) * weyl_step;
    const std::uint64_t mixed = (word ^ word >> 31) * weyl_step;
    std::swap(order[static_cast<std::size_t>(k)], order[(mixed >> 20) % static_cast<std::uint64_t>(k + 1)]);
  }
  return order;
}

std::vector<std::size_t> skewed_counts(std::size_t mean_bytes, int num_blocks, double skew, std::uint64_t seed) {
  const double factor = falling_factor(num_blocks, skew), sum = geometric_sum(factor, num_blocks);
  const double total_bytes = static_cast<double>(mean_bytes) * num_blocks;
  std::vector<std::size_t> counts(static_cast<std::size_t>(num_blocks));
  double share = 0, term = 1;
  std::size_t given_bytes = 0;
  for (const int block : permutation(num_blocks, seed)) {
    share += term / sum;
    term *= factor;
    const auto until = static_cast<std::size_t>(std::llround(share * total_bytes));
    counts[static_cast<std::size_t>(block)] = until - given_bytes;
    given_bytes = until;
  }
  return counts;
}

}  // namespace earlybird
