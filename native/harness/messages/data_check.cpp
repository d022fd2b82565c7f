// Message contents are a Weyl sequence of 64-bit words: cheap to generate, and a misplaced byte is detected.
#include "harness/messages/data_check.hpp"

#include <cstring>

namespace earlybird {

std::uint64_t content_key(int sender, std::int64_t message, int iteration) {
  std::uint64_t key = static_cast<std::uint64_t>(sender) * 0xBF58476D1CE4E5B9u;
  key ^= static_cast<std::uint64_t>(message) * 0x94D049BB133111EBu;
  key ^= static_cast<std::uint64_t>(iteration + 1) * 0xD6E8FEB86659FD93u;
  return key ^ (key >> 31);
}

void fill(std::byte *data, std::size_t size_bytes, std::uint64_t key) {
  const std::size_t num_words = size_bytes / 8;
  for (std::size_t k = 0; k < num_words; ++k) {
    const std::uint64_t word = content_word(key, k);
    std::memcpy(data + 8 * k, &word, 8);
  }
  const std::uint64_t last = content_word(key, num_words);
  std::memcpy(data + 8 * num_words, &last, size_bytes % 8);
}

bool holds(const std::byte *data, std::size_t size_bytes, std::uint64_t key) {
  const std::size_t num_words = size_bytes / 8;
  std::uint64_t difference = 0;
  for (std::size_t k = 0; k < num_words; ++k) {
    std::uint64_t word;
    std::memcpy(&word, data + 8 * k, 8);
    difference |= word ^ content_word(key, k);
  }
  const std::uint64_t last = content_word(key, num_words);
  return difference == 0 && std::memcmp(data + 8 * num_words, &last, size_bytes % 8) == 0;
}

}  // namespace earlybird
