// Contiguous messages of one size in one buffer, such as one from or to each rank.
#pragma once

#include <cstddef>

#include "harness/messages/data_check.hpp"

namespace earlybird {

struct Blocks {
  std::size_t block_bytes;
  int count;

  std::size_t offset(int k) const { return static_cast<std::size_t>(k) * block_bytes; }

  // `key(k)` is the key of block k's contents.
  template <class Key>
  void fill_all(std::byte *data, const Key &key) const {
    for (int k = 0; k < count; ++k) fill(data + offset(k), block_bytes, key(k));
  }

  template <class Key>
  bool hold_all(const std::byte *data, const Key &key) const {
    for (int k = 0; k < count; ++k) {
      if (!holds(data + offset(k), block_bytes, key(k))) return false;
    }
    return true;
  }
};

}  // namespace earlybird
