// The buffer that the methods of a pipeline send, its partitions and their threads.
#pragma once

#include <cstddef>

#include "harness/messages/buffer.hpp"
#include "harness/team/team.hpp"

namespace earlybird {

// The buffer that rank 0 sends to rank 1, and the assignment of its partitions to threads of rank 0, and of rank 1 if its
// threads receive.
struct Transfer {
  Team &team;
  Buffer &buffer;
  std::size_t size_bytes;
  int num_partitions;  // of all threads together
  int num_threads;
  bool threads_receive = false;  // or only the main thread of rank 1 does

  bool sends() const { return team.rank() == 0; }
  int peer() const { return sends() ? 1 : 0; }
  std::size_t partition_bytes() const { return size_bytes / static_cast<std::size_t>(num_partitions); }
  std::byte *partition(int k) { return buffer.data() + offset_of(k); }
  std::size_t offset_of(int k) const { return static_cast<std::size_t>(k) * partition_bytes(); }

  // Thread t marks partitions first_of(t) to first_of(t + 1) - 1 as ready, in order: theta of them (Gillis et al. 2023), or
  // one more or less if the threads do not divide the partitions.
  int first_of(int thread) const { return static_cast<int>(static_cast<long long>(thread) * num_partitions / num_threads); }
  // With fewer partitions than threads, all threads from sharing_of(p) to before sharing_of(p + 1) compute partition p together.
  bool threads_share() const { return num_partitions < num_threads; }
  int sharing_of(int partition) const {
    return static_cast<int>((static_cast<long long>(partition) * num_threads + num_partitions - 1) / num_partitions);
  }
  int shared_by(int thread) const { return static_cast<int>(static_cast<long long>(thread) * num_partitions / num_threads); }
  int partitions_of(int thread) const { return first_of(thread + 1) - first_of(thread); }
  int thread_of(int partition) const { return static_cast<int>(((partition + 1LL) * num_threads - 1) / num_partitions); }
};

}  // namespace earlybird
