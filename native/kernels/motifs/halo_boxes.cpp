// The tag of a message is the direction in which it is sent: in a periodic grid two ranks may be neighbours twice.
#include "kernels/motifs/halo_boxes.hpp"

#include <algorithm>
#include <cstring>

namespace earlybird {

namespace {

std::vector<Triple> directions_of(int num_points) {
  std::vector<Triple> directions;
  for (int z = -1; z <= 1; ++z) {
    for (int y = -1; y <= 1; ++y) {
      for (int x = -1; x <= 1; ++x) {
        const int distance = x * x + y * y + z * z;
        if (distance == 1 || (num_points == 27 && distance > 0)) directions.push_back({x, y, z});
      }
    }
  }
  return directions;
}

int tag_of(const Triple &direction) { return (direction[0] + 1) + 3 * (direction[1] + 1) + 9 * (direction[2] + 1); }

// The cells along one dimension of a block of `size` that lie in `direction`: own cells, or ghost cells beyond them.
Range cells_in(int direction, int size, bool ghosts) {
  if (direction == 0) return {0, size};
  const int first = direction < 0 ? (ghosts ? -1 : 0) : (ghosts ? size : size - 1);
  return {first, first + 1};
}

int most_planes(const Box &box) {
  int most = 0;
  for (const Range &planes : box.planes) most = std::max(most, planes.size());
  return most;
}

std::size_t chunk_bytes(const Box &box, int num_variables) {
  return sizeof(double) * static_cast<std::size_t>(num_variables) * static_cast<std::size_t>(most_planes(box)) *
         static_cast<std::size_t>(box.y.size()) * static_cast<std::size_t>(box.x.size());
}

class Packed : public HaloEdges {
 public:
  Packed(const Boxes &sends, const Boxes &receives, const Cells &cells) : sends_(sends), receives_(receives) {
    edges_ = {with_buffers(sends, cells), with_buffers(receives, cells)};
  }

  void pack(Cells &cells, int copy, const ChunkOf &chunk) override {
    std::byte *packed = edges_.sends[static_cast<std::size_t>(chunk.box)].chunk(chunk.chunk);
    for_each_row(sends_, cells, copy, chunk, [&packed](double *row, std::size_t row_bytes) {
      std::memcpy(packed, row, row_bytes);
      packed += row_bytes;
    });
  }
  void unpack(Cells &cells, int copy, const ChunkOf &chunk) override {
    const std::byte *packed = edges_.receives[static_cast<std::size_t>(chunk.box)].chunk(chunk.chunk);
    for_each_row(receives_, cells, copy, chunk, [&packed](double *row, std::size_t row_bytes) {
      std::memcpy(row, packed, row_bytes);
      packed += row_bytes;
    });
  }

 private:
  std::vector<Edge> with_buffers(const Boxes &boxes, const Cells &cells) {
    std::vector<Edge> edges = boxes.edges();
    for (std::size_t k = 0; k < edges.size(); ++k) {
      Edge &edge = edges[k];
      edge.chunk_bytes = edge.chunk_stride_bytes = chunk_bytes(boxes.all()[k], cells.num_variables());
      edge.count = static_cast<int>(edge.chunk_bytes);
      edge.type = MPI_BYTE;
      edge.data = buffers_.emplace_back(edge.chunk_bytes * static_cast<std::size_t>(edge.num_chunks())).data();
    }
    return edges;
  }

  template <class Copy>
  static void for_each_row(const Boxes &boxes, Cells &cells, int copy, const ChunkOf &chunk, const Copy &copy_row) {
    const Box &box = boxes.all()[static_cast<std::size_t>(chunk.box)];
    const Range planes = box.planes[static_cast<std::size_t>(chunk.chunk)];
    const std::size_t row_bytes = sizeof(double) * static_cast<std::size_t>(box.x.size());
    for (int variable = 0; variable < cells.num_variables(); ++variable) {
      for (int z = planes.begin; z < planes.end; ++z) {
        for (int y = box.y.begin; y < box.y.end; ++y) copy_row(cells.at(copy, variable, {box.x.begin, y, z}), row_bytes);
      }
    }
  }

  const Boxes &sends_, &receives_;
  std::vector<Buffer> buffers_;
};

class Derived : public HaloEdges {
 public:
  Derived(const Boxes &sends, const Boxes &receives, Cells &cells, int copy) {
    edges_ = {with_types(sends, cells, copy), with_types(receives, cells, copy)};
  }
  ~Derived() override {
    for (Edge &edge : edges_.sends) MPI_Type_free(&edge.type);
    for (Edge &edge : edges_.receives) MPI_Type_free(&edge.type);
  }

 private:
  static std::vector<Edge> with_types(const Boxes &boxes, Cells &cells, int copy) {
    std::vector<Edge> edges = boxes.edges();
    for (std::size_t k = 0; k < edges.size(); ++k) {
      Edge &edge = edges[k];
      const Box &box = boxes.all()[k];
      edge.data = reinterpret_cast<std::byte *>(cells.at(copy, 0, {box.x.begin, box.y.begin, box.planes.front().begin}));
      edge.chunk_bytes = chunk_bytes(box, cells.num_variables());
      edge.chunk_stride_bytes = sizeof(double) * static_cast<std::size_t>(cells.stride(2) * most_planes(box));
      edge.count = 1;
      edge.type = chunk_type(box, cells, edge.chunk_stride_bytes);
    }
    return edges;
  }

  // Rows of planes of variables. Its extent is the distance to the next chunk, so that chunks follow each other in a
  // message and in a partitioned buffer.
  static MPI_Datatype chunk_type(const Box &box, const Cells &cells, std::size_t extent_bytes) {
    const auto bytes = [](std::ptrdiff_t stride) { return static_cast<MPI_Aint>(stride) * static_cast<MPI_Aint>(sizeof(double)); };
    MPI_Datatype plane, block, variables, chunk;
    MPI_Type_create_hvector(box.y.size(), box.x.size(), bytes(cells.stride(1)), MPI_DOUBLE, &plane);
    MPI_Type_create_hvector(most_planes(box), 1, bytes(cells.stride(2)), plane, &block);
    MPI_Type_create_hvector(cells.num_variables(), 1, bytes(cells.variable_stride()), block, &variables);
    MPI_Type_create_resized(variables, 0, static_cast<MPI_Aint>(extent_bytes), &chunk);
    MPI_Type_commit(&chunk);
    for (MPI_Datatype *part : {&plane, &block, &variables}) MPI_Type_free(part);
    return chunk;
  }
};

}  // namespace

Boxes::Boxes(const HaloShape &shape, bool receives) : of_partition_(static_cast<std::size_t>(shape.num_partitions)) {
  const Triple size = shape.size();
  const int last = shape.num_partitions - 1;
  for (const Triple &direction : directions_of(shape.num_points)) {
    const std::optional<int> peer = shape.grid.neighbour(shape.rank, direction, shape.periodic);
    if (!peer) continue;
    Box box{direction, cells_in(direction[0], size[0], receives), cells_in(direction[1], size[1], receives), {}};
    Edge edge{};
    edge.peer = *peer;
    // The tag is that of the sender's direction.
    edge.tag = tag_of(receives ? Triple{-direction[0], -direction[1], -direction[2]} : direction);
    const auto append = [&](const Range &planes, int partition, int partition_of_sender) {
      of_partition_[static_cast<std::size_t>(partition)].push_back({static_cast<int>(boxes_.size()),
                                                                    static_cast<int>(box.planes.size())});
      box.planes.push_back(planes);
      edge.owners.push_back(shape.thread_of(partition));
      edge.lanes.push_back(shape.thread_of(partition_of_sender));
    };
    if (direction[2] == 0) {
      for (int k = 0; k < shape.num_partitions; ++k) append(shape.planes_of(k), k, k);
    } else {  // one plane, which belongs to the first or the last partition; at its sender to the other
      const int partition = direction[2] < 0 ? 0 : last;
      append(cells_in(direction[2], size[2], receives), partition, receives ? last - partition : partition);
    }
    boxes_.push_back(std::move(box));
    edges_.push_back(std::move(edge));
  }
}

std::unique_ptr<HaloEdges> make_packed(const Boxes &sends, const Boxes &receives, const Cells &cells) {
  return std::make_unique<Packed>(sends, receives, cells);
}

std::unique_ptr<HaloEdges> make_derived(const Boxes &sends, const Boxes &receives, Cells &cells, int copy) {
  return std::make_unique<Derived>(sends, receives, cells, copy);
}

}  // namespace earlybird
