// Adds one buffer to another repeatedly; the sums are integers that doubles represent exactly for the whole batch.
#include "kernels/collectives/reduce_local.hpp"

#include "harness/messages/buffer.hpp"
#include "kernels/collectives/parts/summands.hpp"

namespace earlybird {

void measure_reduce_local(const Task &task, const Point &point) {
  const auto size_bytes = static_cast<std::size_t>(point.integer("size_bytes"));
  const Summands summands(size_bytes);
  Buffer added(size_bytes), sum(size_bytes);
  const auto add = [&](int times) {
    for (int k = 0; k < times; ++k)
      MPI_Reduce_local(added.data(), sum.data(), summands.count(size_bytes), summands.type(), summands.op());
  };
  Operation operation;
  operation.batch = task.sampler.choose_batch(add);
  operation.prepare = [&](int iteration) {
    summands.fill(sum.data(), 0, iteration);
    summands.fill(added.data(), 1, iteration);
  };
  operation.run = [&] { add(operation.batch); };
  operation.check = [&](int iteration) { return summands.hold_repeated(sum.data(), operation.batch, iteration); };
  operation.keep_rank_times = true;
  const Series series = task.sampler.take(operation);
  task.sampler.write("collective", "reduce_local", point, series, operation, series.delivered);
}

}  // namespace earlybird
