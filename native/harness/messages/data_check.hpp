// Message contents that differ by sender, message and iteration, and the check that they arrived.
#pragma once

#include <cstddef>
#include <cstdint>

namespace earlybird {

// An odd number close to 2^64 divided by the golden ratio.
constexpr std::uint64_t weyl_step = 0x9E3779B97F4A7C15u;

// The key from which `fill` generates the contents of one message; different arguments give different contents.
std::uint64_t content_key(int sender, std::int64_t message, int iteration);

// The 64-bit word `index` of the contents of `key`.
constexpr std::uint64_t content_word(std::uint64_t key, std::size_t index) { return key + weyl_step * (index + 1); }

// Writes the contents of `key`. Every byte depends on the key, so every page and cache line changes.
void fill(std::byte *data, std::size_t size_bytes, std::uint64_t key);

// Whether `data` has exactly the contents of `key`.
bool holds(const std::byte *data, std::size_t size_bytes, std::uint64_t key);

}  // namespace earlybird
