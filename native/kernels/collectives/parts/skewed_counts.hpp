// The counts of vector collectives: blocks of different sizes with a known mean and a known largest block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace earlybird {

// Bytes of `num_blocks` blocks, `mean_bytes` on average exactly; the largest has `skew` times as many, rounded. Sizes fall by
// the same factor from each block to the next smaller one. Their order depends on `seed` only: the same seed gives the same
// counts on every rank. A skew of 1 gives equal blocks; the largest possible one, `num_blocks`, gives all bytes to one block.
std::vector<std::size_t> skewed_counts(std::size_t mean_bytes, int num_blocks, double skew, std::uint64_t seed);

// A permutation of 0..count-1 that depends on `seed` only.
std::vector<int> permutation(int count, std::uint64_t seed);

}  // namespace earlybird
