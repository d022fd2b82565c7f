// What a rank exchanges with its neighbours in a halo exchange: boxes of cells, cut into the chunks of the threads.
#pragma once

#include <memory>
#include <vector>

#include "harness/messages/buffer.hpp"
#include "kernels/motifs/stencil.hpp"
#include "kernels/motifs/style.hpp"

namespace earlybird {

// A halo exchange at one point.
struct HaloShape {
  ProcessGrid grid;
  int rank;
  bool periodic;
  int num_variables;
  int num_points;  // of the stencil: 7 has the 6 faces as neighbours, 27 also the edges and corners
  int num_partitions, num_threads;

  Triple size() const { return {grid.cells_of(rank, 0).size(), grid.cells_of(rank, 1).size(), grid.cells_of(rank, 2).size()}; }
  // The planes of cells, along z, of one of the partitions.
  Range planes_of(int partition) const { return part_of(size()[2], num_partitions, partition); }
  // Threads that compute a partition together, the first of which sends and receives it; 1 if a thread has whole partitions.
  int sharing() const { return num_partitions < num_threads ? num_threads / num_partitions : 1; }
  int thread_of(int partition) const { return sharing() > 1 ? partition * sharing() : partition / (num_partitions / num_threads); }
};

// The cells of this rank that a neighbour needs, or the ghost cells that it fills. A box of several planes along z has a
// chunk for each partition; chunks are as long as the largest one needs, in all styles.
struct Box {
  Triple direction;  // of the neighbour
  Range x, y;
  std::vector<Range> planes;  // of each chunk
};

struct ChunkOf {
  int box, chunk;
};

// The boxes of one direction of messages in the order of their edges.
class Boxes {
 public:
  Boxes(const HaloShape &shape, bool receives);

  const std::vector<Box> &all() const { return boxes_; }
  // The chunks that are complete with the cells of a partition, or, of those received, that its thread takes.
  const std::vector<ChunkOf> &of_partition(int partition) const { return of_partition_[static_cast<std::size_t>(partition)]; }

  // Edges without data: peers, tags and threads.
  const std::vector<Edge> &edges() const { return edges_; }

 private:
  std::vector<Box> boxes_;
  std::vector<Edge> edges_;
  std::vector<std::vector<ChunkOf>> of_partition_;
};

// The edges of a halo exchange with the memory from which they send and into which they receive.
class HaloEdges {
 public:
  virtual ~HaloEdges() = default;

  const Edges &edges() const { return edges_; }
  virtual void pack(Cells & /*cells*/, int /*copy*/, const ChunkOf & /*chunk*/) {}
  virtual void unpack(Cells & /*cells*/, int /*copy*/, const ChunkOf & /*chunk*/) {}

 protected:
  Edges edges_;
};

// Through contiguous buffers.
std::unique_ptr<HaloEdges> make_packed(const Boxes &sends, const Boxes &receives, const Cells &cells);

// Straight from and to copy `copy` of the cells by derived datatypes; the chunks of a box must have equal sizes.
std::unique_ptr<HaloEdges> make_derived(const Boxes &sends, const Boxes &receives, Cells &cells, int copy);

}  // namespace earlybird
