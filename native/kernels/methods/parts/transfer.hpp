// The buffer that the methods of a pipeline send, its partitions and their threads.
#pragma once

#include <cstddef>

#include "harness/messages/buffer.hpp"
#include "harness/team/team.hpp"

namespace earlybird {

// The buffer that rank 0 sends to rank 1, and the assignment of its partitions to threads of rank 0.
struct Transfer {
  Team &team;
  Buffer &buffer;
  std::size_t size_bytes;
  int num_partitions;  // of all threads together
  int num_threads;

  bool sends() const { return team.rank() == 0; }
  int peer() const { return sends() ? 1 : 0; }
  std::size_t partition_bytes() const { return size_bytes / static_cast<std::size_t>(num_partitions); }
  std::byte *partition(int k) { return buffer.data() + offset_of(k); }
  std::size_t offset_of(int k) const { return static_cast<std::size_t>(k) * partition_bytes(); }

  // The theta of Gillis et al. 2023: thread t marks partitions t*theta to (t + 1)*theta - 1 as ready, in order.
  int partitions_per_thread() const { return num_partitions / num_threads; }
  int thread_of(int partition) const { return partition / partitions_per_thread(); }
  int first_of(int thread) const { return thread * partitions_per_thread(); }
};

}  // namespace earlybird
