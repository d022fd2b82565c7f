// A step updates all cells by the stencil, sends those at the boundary of the block and receives the ghost cells for the
// next step. Threads own slabs of planes along z, in partitions; a partition is sent as soon as it is computed, if the style
// can do that.
#include "kernels/motifs/halo.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "harness/machine/clock.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/computing/computing.hpp"
#include "kernels/motifs/halo_boxes.hpp"
#include "kernels/motifs/motif.hpp"
#include "kernels/motifs/time_split.hpp"

namespace earlybird {

namespace {

constexpr int checked_steps = 3;
constexpr int most_variables = 4096;

class Halo : public Motif {
 public:
  Halo(const Task &task, const HaloShape &shape, bool derived, const StyleKind &kind, Computing &computing)
      : team_(task.team),
        crew_(task.crew),
        shape_(shape),
        computing_(computing),
        cells_(shape.size(), shape.num_variables),
        sends_(shape, false),
        receives_(shape, true),
        split_(shape.num_threads),
        computing_threads_(static_cast<std::size_t>(shape.sharing() > 1 ? shape.num_partitions : 0)),
        alone_([this](int thread) { compute(thread); }),
        unpacking_([this](int thread) { take(thread); }),
        together_([this](int thread) {
          exchange_->style->start_receives_of(thread);
          compute(thread);
          take(thread);
          exchange_->style->finish_sends_of(thread);
        }) {
    // Requests of derived types are of one copy of the cells.
    for (int copy = 0; copy < (derived ? 2 : 1); ++copy) {
      Exchange &exchange = exchanges_.emplace_back();
      exchange.edges = derived ? make_derived(sends_, receives_, cells_, copy) : make_packed(sends_, receives_, cells_);
      exchange.style = kind.make(team_, exchange.edges->edges(), shape.num_threads);
    }
    initialize();
  }

  void prepare(int round) override { computing_.draw(round, 1); }

  void run() override {
    exchange_ = &exchanges_[exchanges_.size() == 2 ? static_cast<std::size_t>(1 - current_) : 0];
    Style &style = *exchange_->style;
    for (std::atomic<int> &threads : computing_threads_) threads.store(shape_.sharing(), std::memory_order_relaxed);
    split_.begin();
    split_.communicate(0, [&] {
      style.start_receives();
      style.start_sends();
    });
    if (style.threads_communicate()) {
      crew_.run(together_, crew_.between_jobs_of_ranks());
    } else {
      crew_.run(alone_, crew_.between_jobs_of_ranks());
      split_.communicate(0, [&] { style.all_ready(); });
      style.await_receives();
      crew_.run(unpacking_, crew_.between_jobs_of_ranks());
    }
    style.finish_receives();
    style.finish_sends();
    current_ = 1 - current_;
    split_.end();
  }

  const std::vector<double> &split_s() const override { return split_.times_s(); }

  bool is_correct() override {
    initialize();
    computing_.draw_nothing();
    for (int step = 0; step < checked_steps; ++step) run();
    Reference expected = compute_alone(shape_.grid, shape_.rank, shape_.periodic, shape_.num_variables, shape_.num_points,
                                       checked_steps);
    const Triple size = shape_.size();
    for (int variable = 0; variable < shape_.num_variables; ++variable) {
      for (int z = 0; z < size[2]; ++z) {
        for (int y = 0; y < size[1]; ++y) {
          const double *const found = cells_.at(current_, variable, {0, y, z});
          const int margin = expected.margin;
          const double *const right = expected.cells.at(expected.copy, variable, {margin, y + margin, z + margin});
          if (std::memcmp(found, right, sizeof(double) * static_cast<std::size_t>(size[0])) != 0) return false;
        }
      }
    }
    return true;
  }

  Traffic traffic() const override { return traffic_of(*exchanges_[0].style, exchanges_[0].edges->edges()); }
  int runs_until(int num_starts) const override { return num_starts * static_cast<int>(exchanges_.size()); }

 private:
  struct Exchange {
    std::unique_ptr<HaloEdges> edges;
    std::unique_ptr<Style> style;  // destroyed before the datatypes of its edges
  };

  void initialize() {
    const ProcessGrid &grid = shape_.grid;
    const Triple begin = {grid.cells_of(shape_.rank, 0).begin, grid.cells_of(shape_.rank, 1).begin,
                          grid.cells_of(shape_.rank, 2).begin};
    cells_.initialize(begin, grid.cells(), shape_.periodic);
  }

  // The partitions that a thread sends and receives.
  int first_of(int thread) const {
    const int sharing = shape_.sharing();
    return sharing > 1 ? (thread + sharing - 1) / sharing : thread * (shape_.num_partitions / shape_.num_threads);
  }

  // Computes the partitions of a thread and packs what neighbours need of them.
  void compute(int thread) {
    if (shape_.sharing() > 1) {
      compute_together(thread);
      return;
    }
    const Triple size = shape_.size();
    const int first = first_of(thread), end = first_of(thread + 1);
    for (int partition = first; partition < end; ++partition) {
      split_.compute(thread, [&] {
        const double begin_s = now_s();
        cells_.update(current_, {0, size[0]}, {0, size[1]}, shape_.planes_of(partition), shape_.num_points);
        computing_.finish(thread, begin_s, 1.0 / (end - first));
      });
      send(thread, partition);
    }
  }

  // Computes some of the planes of a partition. Its first thread, whose requests the messages are, sends it when the others
  // are done.
  void compute_together(int thread) {
    const int sharing = shape_.sharing(), partition = thread / sharing;
    std::atomic<int> &computing_threads = computing_threads_[static_cast<std::size_t>(partition)];
    split_.compute(thread, [&] {
      const double begin_s = now_s();
      const Triple size = shape_.size();
      const Range planes = shape_.planes_of(partition), part = part_of(planes.size(), sharing, thread % sharing);
      cells_.update(current_, {0, size[0]}, {0, size[1]}, {planes.begin + part.begin, planes.begin + part.end}, shape_.num_points);
      computing_.finish(thread, begin_s, 1);
    });
    computing_threads.fetch_sub(1, std::memory_order_acq_rel);
    if (thread % sharing != 0) return;
    while (computing_threads.load(std::memory_order_acquire) > 0) team_.pause();
    send(thread, partition);
  }

  void send(int thread, int partition) {
    split_.communicate(thread, [&] {
      for (const ChunkOf &chunk : sends_.of_partition(partition)) {
        exchange_->edges->pack(cells_, 1 - current_, chunk);
        exchange_->style->ready(chunk.box, chunk.chunk);
      }
    });
  }

  // Waits for the chunks of a thread and unpacks them.
  void take(int thread) {
    for (int partition = first_of(thread); partition < first_of(thread + 1); ++partition) {
      for (const ChunkOf &chunk : receives_.of_partition(partition)) {
        exchange_->style->wait_for(chunk.box, chunk.chunk);
        split_.communicate(thread, [&] { exchange_->edges->unpack(cells_, 1 - current_, chunk); });
      }
    }
  }

  Team &team_;
  Crew &crew_;
  const HaloShape shape_;
  Computing &computing_;
  Cells cells_;
  const Boxes sends_, receives_;
  std::vector<Exchange> exchanges_;
  TimeSplit split_;
  std::vector<std::atomic<int>> computing_threads_;  // of each partition, if threads share them
  const std::function<void(int)> alone_, unpacking_, together_;
  Exchange *exchange_ = nullptr;  // of the present step
  int current_ = 0;               // the copy of the cells that the next step reads
};

// Ends the program with a message unless all chunks of every rank have the same number of planes.
void require_equal_chunks(const Point &point, const ProcessGrid &grid, int num_partitions) {
  if (grid.cells()[2] % (grid.ranks()[2] * num_partitions) == 0) return;
  refuse("the request gives buffers=derived cells=" + point.text("cells") + " process_grid=" + point.text("process_grid") +
         " partitions=" + point.text("partitions") + "; give cells along z that are a multiple of ranks times partitions");
}

}  // namespace

void measure_halo(const Task &task, const std::string &kernel) {
  const Point &point = task.point;
  const ProcessGrid grid(point, task.team.size());
  const int num_points = point.integer("stencil", 7, 27);
  if (num_points != 7 && num_points != 27) refuse("the request gives stencil=" + point.text("stencil") + "; give 7 or 27");
  const std::string buffers = point.text("buffers");
  if (buffers != "packed" && buffers != "derived") refuse("the request gives buffers=" + buffers + "; give packed or derived");
  const int num_partitions = read_partitions(task, grid.cells()[2] / grid.ranks()[2], "planes of cells along z", true);
  if (buffers == "derived") require_equal_chunks(point, grid, num_partitions);
  const HaloShape shape{
      grid,           task.team.rank(), read_yes(point, "periodic"), point.integer("variables", 1, most_variables), num_points,
      num_partitions, task.crew.size()};
  Computing computing(task.team, task.crew, read_noise(point, task.request.seed));
  measure_motif(task, kernel,
                [&](const StyleKind &kind) { return std::make_unique<Halo>(task, shape, buffers == "derived", kind, computing); });
}

}  // namespace earlybird
