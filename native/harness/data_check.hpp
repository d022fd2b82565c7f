// Message contents that differ with sender, message and iteration, and the check that they arrived.
#pragma once

#include <cstddef>
#include <cstdint>

namespace earlybird {

// A key from which `fill` makes the bytes of one message; different arguments give different contents.
std::uint64_t content_key(int sender, std::int64_t message, int iteration);

// Writes the contents of `key`. Every byte changes with the key, so no page or cache line stays as it was.
void fill(std::byte *data, std::size_t size_bytes, std::uint64_t key);

// Whether `data` holds exactly the contents of `key`.
bool holds(const std::byte *data, std::size_t size_bytes, std::uint64_t key);

}  // namespace earlybird
