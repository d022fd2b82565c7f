// Sweep3D: wavefronts from the four corners of a 2-D process grid, one after the other. A rank computes its block of cells in
// blocks of planes along z; each needs the faces that the ranks before it along x and y have computed. Threads own groups of
// angles, the partitions of the faces: where the style allows it, a thread starts when its groups have arrived.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "harness/messages/buffer.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/computing/computing.hpp"
#include "kernels/motifs/motif.hpp"
#include "kernels/motifs/sweep_cells.hpp"
#include "kernels/motifs/time_split.hpp"

using namespace earlybird;

namespace {

constexpr int most_angles = 4096, most_blocks = 1 << 20;
constexpr int along_x = 0, along_y = 1, num_faces = 2;
// Blocks of planes use two sets of buffers in turn: a block is computed while the faces of the one before are sent and
// those of the next arrive.
constexpr int num_slots = 2;

struct Shape {
  ProcessGrid grid;
  int rank;
  int num_angles, num_partitions, num_threads;
  int planes_per_block;

  Triple size() const { return {grid.cells_of(rank, 0).size(), grid.cells_of(rank, 1).size(), grid.cells_of(rank, 2).size()}; }
  int num_blocks() const { return (grid.cells()[2] + planes_per_block - 1) / planes_per_block; }
  Range planes_of(int block) const { return {block * planes_per_block, std::min((block + 1) * planes_per_block, grid.cells()[2])}; }
  Range angles_of(int partition) const { return part_of(num_angles, num_partitions, partition); }
  int partitions_per_thread() const { return num_partitions / num_threads; }

  // Values of one angle of a face.
  std::size_t face_values(int face) const {
    return static_cast<std::size_t>(planes_per_block) * static_cast<std::size_t>(size()[face == along_x ? 1 : 0]);
  }
  // Groups of angles and blocks of planes that are smaller than others are padded, in all styles.
  std::size_t chunk_values(int face) const {
    return face_values(face) * static_cast<std::size_t>(largest_part(num_angles, num_partitions));
  }
};

// The faces that enter and leave a block of planes in sweeps from one corner.
class Faces {
 public:
  Faces(const Shape &shape, const Corner &corner, Team &team, const StyleKind &kind) : shape_(shape) {
    for (int face = 0; face < num_faces; ++face) {
      entering_.emplace_back(buffer_bytes(face));
      leaving_.emplace_back(buffer_bytes(face));
      const Triple forward = {face == along_x ? corner.x : 0, face == along_y ? corner.y : 0, 0};
      receive_of_[face] = append(edges_.receives, entering_[face], face, {-forward[0], -forward[1], 0});
      append(edges_.sends, leaving_[face], face, forward);
    }
    style_ = kind.make(team, edges_, shape.num_threads);
  }

  Style &style() { return *style_; }
  const Edges &edges() const { return edges_; }

  // Returns when a partition of both faces has arrived; nothing enters at the edge of the grid.
  void wait_for(int partition) {
    for (const int receive : receive_of_) {
      if (receive >= 0) style_->wait_for(receive, partition);
    }
  }
  // The values that enter a partition, in the place of those that leave it.
  double *begin(int face, int partition) {
    const std::size_t num_bytes = shape_.chunk_values(face) * sizeof(double);
    const std::size_t offset = num_bytes * static_cast<std::size_t>(partition);
    std::memcpy(leaving_[face].data() + offset, entering_[face].data() + offset, num_bytes);
    return reinterpret_cast<double *>(leaving_[face].data() + offset);
  }
  void ready(int partition) {
    for (std::size_t send = 0; send < edges_.sends.size(); ++send) style_->ready(static_cast<int>(send), partition);
  }

 private:
  std::size_t buffer_bytes(int face) const {
    return shape_.chunk_values(face) * sizeof(double) * static_cast<std::size_t>(shape_.num_partitions);
  }

  // The number of the edge in this direction; -1 if there is no neighbour.
  int append(std::vector<Edge> &edges, Buffer &buffer, int face, const Triple &direction) {
    const std::optional<int> peer = shape_.grid.neighbour(shape_.rank, direction, false);
    if (!peer) return -1;
    Edge edge{};
    edge.peer = *peer;
    edge.tag = face;
    edge.data = buffer.data();
    edge.chunk_bytes = edge.chunk_stride_bytes = shape_.chunk_values(face) * sizeof(double);
    edge.count = static_cast<int>(edge.chunk_bytes);
    edge.type = MPI_BYTE;
    for (int k = 0; k < shape_.num_partitions; ++k) edge.owners.push_back(k / shape_.partitions_per_thread());
    edge.lanes = edge.owners;
    edges.push_back(std::move(edge));
    return static_cast<int>(edges.size()) - 1;
  }

  const Shape &shape_;
  std::vector<Buffer> entering_, leaving_;
  Edges edges_;
  int receive_of_[num_faces];
  std::unique_ptr<Style> style_;
};

class Sweep : public Motif {
 public:
  Sweep(const Task &task, const Shape &shape, const StyleKind &kind, Computing &computing)
      : crew_(task.crew),
        shape_(shape),
        computing_(computing),
        cells_(begin_of(shape), shape.size(), shape.num_angles),
        split_(shape.num_threads),
        job_([this](int thread) { compute_block(thread); }) {
    for (const Corner &corner : corners) {
      for (int slot = 0; slot < num_slots; ++slot) faces_.push_back(std::make_unique<Faces>(shape_, corner, task.team, kind));
    }
  }

  void prepare(int round) override {
    const int computations = num_corners * shape_.num_blocks();
    computing_.draw(round % (most_blocks / computations + 1) * computations, computations);
  }

  void run() override {
    split_.begin();
    for (corner_ = 0; corner_ < num_corners; ++corner_) sweep();
    split_.end();
  }

  const std::vector<double> &split_s() const override { return split_.times_s(); }

  bool is_correct() override {
    computing_.draw_nothing();
    cells_.forget();
    run();
    const Triple &all = shape_.grid.cells();
    SweepCells alone({0, 0, 0}, all, shape_.num_angles);
    std::vector<double> from_x(static_cast<std::size_t>(all[1]) * static_cast<std::size_t>(all[2]));
    std::vector<double> from_y(static_cast<std::size_t>(all[0]) * static_cast<std::size_t>(all[2]));
    for (int corner = 0; corner < num_corners; ++corner) {
      for (int angle = 0; angle < shape_.num_angles; ++angle) {
        std::fill(from_x.begin(), from_x.end(), 0.0);
        std::fill(from_y.begin(), from_y.end(), 0.0);
        alone.sweep(corner, angle, {0, all[2]}, from_x.data(), from_y.data());
      }
    }
    return agrees_with(alone);
  }

  Traffic traffic() const override {
    Traffic sum;
    for (int corner = 0; corner < num_corners; ++corner) {
      for (int block = 0; block < shape_.num_blocks(); ++block) {
        Faces &used = faces(corner, block);
        sum += traffic_of(used.style(), used.edges());
      }
    }
    return sum;
  }

  int runs_until(int num_starts) const override {
    const int starts = std::max(shape_.num_blocks() / num_slots, 1);
    return (num_starts + starts - 1) / starts;
  }

 private:
  static Triple begin_of(const Shape &shape) {
    return {shape.grid.cells_of(shape.rank, 0).begin, shape.grid.cells_of(shape.rank, 1).begin, 0};
  }

  Faces &faces(int corner, int block) const {
    return *faces_[static_cast<std::size_t>(corner) * num_slots + static_cast<std::size_t>(block % num_slots)];
  }

  // One corner. The receives of a block are started one block ahead.
  void sweep() {
    split_.communicate(0, [&] { faces(corner_, 0).style().start_receives(); });
    for (block_ = 0; block_ < shape_.num_blocks(); ++block_) {
      Style &style = faces(corner_, block_).style();
      if (block_ >= num_slots) style.finish_sends();
      split_.communicate(0, [&] {
        if (block_ + 1 < shape_.num_blocks()) faces(corner_, block_ + 1).style().start_receives();
        style.start_sends();
      });
      computing_.select(corner_ * shape_.num_blocks() + block_);
      style.await_receives();
      crew_.run(job_, crew_.between_jobs_of_ranks());
      split_.communicate(0, [&] { style.all_ready(); });
      style.finish_receives();
    }
    for (int slot = 0; slot < std::min(num_slots, shape_.num_blocks()); ++slot) {
      Style &style = faces(corner_, slot).style();
      for (int thread = 0; thread < shape_.num_threads; ++thread) style.finish_sends_of(thread);
      style.finish_sends();
    }
  }

  void compute_block(int thread) {
    Faces &now = faces(corner_, block_);
    split_.communicate(thread, [&] {
      if (block_ == 0) now.style().start_receives_of(thread);
      if (block_ + 1 < shape_.num_blocks()) faces(corner_, block_ + 1).style().start_receives_of(thread);
    });
    now.style().finish_sends_of(thread);
    const int count = shape_.partitions_per_thread();
    for (int partition = thread * count; partition < (thread + 1) * count; ++partition) {
      now.wait_for(partition);
      split_.compute(thread, [&] { compute_partition(now, thread, partition); });
      split_.communicate(thread, [&] { now.ready(partition); });
    }
  }

  void compute_partition(Faces &now, int thread, int partition) {
    const double begin_s = now_s();
    double *from_x = now.begin(along_x, partition), *from_y = now.begin(along_y, partition);
    const Range angles = shape_.angles_of(partition);
    for (int angle = angles.begin; angle < angles.end; ++angle) {
      cells_.sweep(corner_, angle, shape_.planes_of(block_), from_x, from_y);
      from_x += shape_.face_values(along_x);
      from_y += shape_.face_values(along_y);
    }
    computing_.finish(thread, begin_s, 1.0 / shape_.partitions_per_thread());
  }

  bool agrees_with(const SweepCells &alone) const {
    const Triple size = shape_.size(), begin = begin_of(shape_);
    for (int angle = 0; angle < shape_.num_angles; ++angle) {
      for (int z = 0; z < size[2]; ++z) {
        for (int y = 0; y < size[1]; ++y) {
          const double *const right = alone.row(angle, begin[1] + y, z) + begin[0];
          if (std::memcmp(cells_.row(angle, y, z), right, sizeof(double) * static_cast<std::size_t>(size[0])) != 0) return false;
        }
      }
    }
    return true;
  }

  Crew &crew_;
  const Shape shape_;
  Computing &computing_;
  SweepCells cells_;
  std::vector<std::unique_ptr<Faces>> faces_;  // by corner, then by slot
  TimeSplit split_;
  const std::function<void(int)> job_;
  int corner_ = 0, block_ = 0;
};

void measure(const Task &task) {
  const Point &point = task.point;
  const ProcessGrid grid(point, task.team.size());
  if (grid.ranks()[2] != 1)
    refuse("the request gives process_grid=" + point.text("process_grid") + "; give a grid of one rank along z");
  const int num_angles = point.integer("variables", 1, most_angles);
  const Shape shape{grid,
                    task.team.rank(),
                    num_angles,
                    read_partitions(task, num_angles, "variables"),
                    task.crew.size(),
                    point.integer("planes_per_block", 1, grid.cells()[2])};
  if (num_corners * shape.num_blocks() > most_blocks)
    refuse("the request gives planes_per_block=" + point.text("planes_per_block") + "; give more planes in a block");
  Computing computing(task.team, task.crew, read_noise(point, task.request.seed));
  measure_motif(task, "sweep3d", [&](const StyleKind &kind) { return std::make_unique<Sweep>(task, shape, kind, computing); });
}

}  // namespace

int main(int argc, char **argv) { return motif_main(argc, argv, measure); }
