// Blocks of different sizes in one buffer, one to or from each of some ranks.
#pragma once

#include <climits>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "harness/messages/data_check.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

class VariedBlocks {
 public:
  // Block k, of sizes[k] bytes, is of rank peers[k]. Ends the program with a message if MPI's counts cannot describe them.
  VariedBlocks(std::vector<int> peers, const std::vector<std::size_t> &sizes) : peers_(std::move(peers)) {
    for (const std::size_t size : sizes) {
      if (total_bytes_ + size > INT_MAX)
        refuse("the blocks of a rank have more than " + std::to_string(INT_MAX) + " bytes together; give a smaller size_bytes");
      counts_.push_back(static_cast<int>(size));
      displacements_.push_back(static_cast<int>(total_bytes_));
      total_bytes_ += size;
    }
  }

  std::size_t count() const { return peers_.size(); }
  std::size_t total_bytes() const { return total_bytes_; }
  int peer(std::size_t k) const { return peers_[k]; }
  int bytes(std::size_t k) const { return counts_[k]; }
  int offset(std::size_t k) const { return displacements_[k]; }
  const int *counts() const { return counts_.data(); }
  const int *displacements() const { return displacements_.data(); }

  // `key(rank)` is the key of the contents of that rank's block.
  template <class Key>
  void fill_all(std::byte *data, const Key &key) const {
    for (std::size_t k = 0; k < count(); ++k) fill(data + offset(k), static_cast<std::size_t>(bytes(k)), key(peer(k)));
  }

  template <class Key>
  bool hold_all(const std::byte *data, const Key &key) const {
    for (std::size_t k = 0; k < count(); ++k) {
      if (!holds(data + offset(k), static_cast<std::size_t>(bytes(k)), key(peer(k)))) return false;
    }
    return true;
  }

 private:
  std::vector<int> peers_, counts_, displacements_;
  std::size_t total_bytes_ = 0;
};

}  // namespace earlybird
