// Weights are hashes of rank and iteration, elements are made of the words of message contents.
#include "kernels/collectives/parts/summands.hpp"

#include <cstring>

#include "harness/messages/data_check.hpp"

namespace earlybird {

namespace {

// With up to 2^20 ranks or repetitions, each sum is below 2^52 and so exact.
constexpr std::uint64_t base_range = 1 << 20, weight_range = 1 << 16, slope_range = 1 << 14;

// Negative message numbers are not used by messages; keys of weights and of elements differ.
std::uint64_t element_key(int iteration) { return content_key(0, -1, iteration); }

std::uint64_t rank_mask(int rank, int iteration) {
  const std::uint64_t key = content_key(rank, -2, iteration) * weyl_step;
  return key ^ (key >> 29);
}

double weight(int rank, int iteration) { return static_cast<double>(rank_mask(rank, iteration) >> 20 & (weight_range - 1)); }

double total(std::uint64_t word, double share, double weight) {
  const auto base = static_cast<double>(word >> 40 & (base_range - 1));
  const auto slope = static_cast<double>(word >> 20 & (slope_range - 1));
  return share * base + weight * (1 + slope);
}

}  // namespace

void Summands::fill(std::byte *data, int rank, int iteration) const {
  const std::uint64_t key = element_key(iteration), mask = rank_mask(rank, iteration);
  const double own = weight(rank, iteration);
  for (std::size_t k = 0; 8 * k < size_bytes_; ++k) {
    const std::uint64_t word = content_word(key, k);
    if (of_doubles()) {
      const double value = total(word, 1, own);
      std::memcpy(data + 8 * k, &value, sizeof value);
    } else {
      const std::uint64_t bits = word & mask;
      std::memcpy(data + 8 * k, &bits, size_bytes_ - 8 * k < 8 ? size_bytes_ - 8 * k : 8);
    }
  }
}

bool Summands::hold_total(const std::byte *data, double share, double weight, std::uint64_t mask, int iteration) const {
  const std::uint64_t key = element_key(iteration);
  bool same = true;
  for (std::size_t k = 0; 8 * k < size_bytes_; ++k) {
    const std::uint64_t word = content_word(key, k);
    if (of_doubles()) {
      double value;
      std::memcpy(&value, data + 8 * k, sizeof value);
      same = same && value == total(word, share, weight);
    } else {
      const std::uint64_t bits = word & mask;
      same = same && std::memcmp(data + 8 * k, &bits, size_bytes_ - 8 * k < 8 ? size_bytes_ - 8 * k : 8) == 0;
    }
  }
  return same;
}

bool Summands::hold(const std::byte *data, int num_ranks, int iteration) const {
  double weights = 0;
  std::uint64_t mask = 0;
  for (int r = 0; r < num_ranks; ++r) {
    weights += weight(r, iteration);
    mask ^= rank_mask(r, iteration);
  }
  return hold_total(data, num_ranks, weights, mask, iteration);
}

bool Summands::hold_repeated(const std::byte *data, long long times, int iteration) const {
  const auto added = static_cast<double>(times);
  const std::uint64_t mask = rank_mask(0, iteration) ^ (times % 2 != 0 ? rank_mask(1, iteration) : 0);
  return hold_total(data, 1 + added, weight(0, iteration) + added * weight(1, iteration), mask, iteration);
}

}  // namespace earlybird
