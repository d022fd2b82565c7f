// Interface of the styles: how the threads of a rank exchange messages with its neighbours in each step of a motif.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "harness/team/team.hpp"

namespace earlybird {

// Of a message at most. The tags of the chunks of 26 neighbours have to be below the 32767 that MPI promises (MPI 4.1,
// 9.1.2).
constexpr int most_chunks = 1024;

// One direction of a neighbour: a message of chunks of equal size, one after the other, which threads fill or empty. In
// every style it has the same bytes.
struct Edge {
  int peer;
  int tag;  // different for the edges between the same two ranks
  std::byte *data;
  int count;  // of `type` in one chunk
  MPI_Datatype type;
  std::size_t chunk_stride_bytes;  // from the begin of a chunk to that of the next
  std::size_t chunk_bytes;         // what is sent of it
  std::vector<int> owners;         // the thread of this rank that fills or empties each chunk
  std::vector<int> lanes;          // the thread of the sender that fills each chunk

  int num_chunks() const { return static_cast<int>(owners.size()); }
  int total_count() const { return count * num_chunks(); }
  std::byte *chunk(int k) const { return data + static_cast<std::size_t>(k) * chunk_stride_bytes; }
};

struct Edges {
  std::vector<Edge> sends, receives;
};

// A style. In each step the main thread starts the receives and the sends. If `threads_communicate`, each thread then
// starts its receives, marks each chunk that it has filled as ready, waits for those that it needs, and finishes its sends;
// otherwise the main thread sends when `all_ready` and awaits all receives. Finally it finishes receives and sends.
// Constructors and destructors are collective.
class Style {
 public:
  explicit Style(Team &team, const Edges &edges) : team_(team), edges_(edges) {}
  virtual ~Style() = default;
  Style(const Style &) = delete;
  Style &operator=(const Style &) = delete;

  virtual bool threads_communicate() const = 0;

  // Called by the main thread while no other thread uses the edges.
  virtual void start_receives() {}
  virtual void start_sends() {}
  virtual void all_ready() {}
  virtual void await_receives() {}
  virtual void finish_receives() {}
  virtual void finish_sends() {}

  // Called by the thread that owns the chunk, or by each thread for all that it owns.
  virtual void start_receives_of(int /*thread*/) {}
  virtual void ready(int /*send*/, int /*chunk*/) {}
  virtual void wait_for(int /*receive*/, int /*chunk*/) {}
  virtual void finish_sends_of(int /*thread*/) {}

  // Messages that this rank sends in a step, and the partitions that it marks as ready one by one.
  virtual int num_messages() const { return static_cast<int>(edges_.sends.size()); }
  virtual int num_partitions() const { return 0; }

 protected:
  Team &team_;
  const Edges &edges_;
};

}  // namespace earlybird
