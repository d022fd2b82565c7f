// Empties the caches of some CPUs, and shows by the time of single loads that they are empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/machine/cores.hpp"

namespace earlybird {

// The data caches of one CPU: the largest that no other core shares, and the largest of all.
struct CacheSizes {
  std::size_t private_bytes = 0, shared_bytes = 0;
  int shared_with = 0;  // the first CPU that shares the largest cache
};

// From /sys; zeros for what it does not describe.
CacheSizes cache_sizes(int cpu);

class CacheFlusher {
 public:
  // For these CPUs, which the calling thread may use, and every cache that one of them uses.
  explicit CacheFlusher(const std::vector<Cpu> &cpus);

  // The flusher for these CPUs, which all points of a launch share: filling its memory takes longer than a flush.
  static CacheFlusher &of(const std::vector<Cpu> &cpus);

  // Reads, on each CPU in turn, twice as much memory as its caches hold; the calling thread, which is that of the constructor,
  // then continues where it could run before. Memory that was written before is in no cache afterwards.
  void flush();

  // Seconds per load of some lines that were loaded immediately before, and after a flush: call `probe_hot` before and
  // `probe_cold` after `flush`, on the same CPU.
  double probe_hot_s();
  double probe_cold_s();

  // The most memory that flush() reads on one CPU.
  std::size_t bytes() const { return memory_.size() * sizeof(memory_[0]); }

 private:
  struct Place {
    Cpu cpu;
    std::size_t read_bytes;
  };

  double chase_s();

  const std::vector<Cpu> before_;  // where the calling thread may run
  std::vector<Place> places_;
  std::vector<std::uint64_t> memory_;
  std::vector<std::uint32_t> chain_;  // the next position of each
  std::uint64_t sum_ = 0;
};

}  // namespace earlybird
