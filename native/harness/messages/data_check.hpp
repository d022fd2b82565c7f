// Message contents that differ by sender, message and iteration, and the check that they arrived.
#pragma once

#include <cstddef>
#include <cstdint>

namespace earlybird {

// The key from which `fill` generates the contents of one message; different arguments give different contents.
std::uint64_t content_key(int sender, std::int64_t message, int iteration);

// Writes the contents of `key`. Every byte depends on the key, so every page and cache line changes.
void fill(std::byte *data, std::size_t size_bytes, std::uint64_t key);

// Whether `data` has exactly the contents of `key`.
bool holds(const std::byte *data, std::size_t size_bytes, std::uint64_t key);

}  // namespace earlybird
