// Collective: one collective operation done in several methods, interleaved; what is timed is its completion, until the
// slowest rank has what it should. Methods are our own algorithms on point-to-point calls, the MPI's forced by settings
// or environment, and the MPI's free choice; each has a communicator of its own.
//
// One call is timed at a time, after the harness's barrier: calls in a row overlap, as a rank that is done with one
// begins the next while others are still in the first, and a batch would measure how often they follow one another.
#include <climits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "harness/clock.hpp"
#include "harness/json.hpp"
#include "harness/kernel_main.hpp"
#include "kernels/collectives/late_ranks.hpp"
#include "kernels/collectives/reduce_local.hpp"
#include "kernels/collectives/registry.hpp"
#include "kernels/collectives/summands.hpp"
#include "kernels/collectives/method_communicators.hpp"

using namespace earlybird;

namespace {

// The proof: long against what a small message or a scheduler takes; less for many ranks, of which more may be late.
constexpr double delay_s = 0.1, delay_among_many_s = 0.05;
constexpr int many_ranks = 8, most_late_ranks = 16;
// Where ranks share cores all sleep so long before each call. One that span in the call before, as some of the MPI's own
// do, has used up more of its core's time than others; the scheduler makes it wait for milliseconds in the call after,
// which another method has to bear. On two cores 4 ranks of MPICH 5.0.2 took 200 us for our own broadcast of 8 bytes in
// turn with the MPI's and 5 ms for that; with all rested 26 us and 48 us. Not between hosts: there is no shared memory to
// spin on, and the bucket of a virtual link would fill meanwhile and let the first bytes of the next call pass at once.
constexpr double rest_s = 1e-3;
// Only to see that a barrier waits.
constexpr double barrier_delay_s = 5e-3;

const std::string reduce_local = "reduce_local";

void need_several(const Team &team) {
  if (team.size() < 2) refuse("collective needs at least 2 ranks");
}

void check_numbers(const Point &point, const Team &team, const std::string &operation) {
  const std::string size = point.text("size_bytes"), ranks = std::to_string(team.size());
  const long long size_bytes = point.integer("size_bytes");
  if (size_bytes < 0 || size_bytes > INT_MAX)
    refuse("the plan gives size_bytes=" + size + "; give 0 to " + std::to_string(INT_MAX));
  if (operation == "barrier" && size_bytes != 0)
    refuse("the plan gives operation=barrier size_bytes=" + size + "; a barrier has no data: give size_bytes=0");
  if (point.has("ranks") && point.integer("ranks") != team.size())
    refuse("the plan gives ranks=" + point.text("ranks") + " and " + ranks + " are here; give the same");
  const bool rooted = operation != reduce_local && has_root(operation);
  const long long root = rooted || point.has("root") ? point.integer("root") : 0;
  if (root < 0 || root >= team.size() || (!rooted && root != 0))
    refuse("the plan gives operation=" + operation + " root=" + point.text("root") + " on " + ranks + " ranks; give " +
           (rooted ? "0 to " + std::to_string(team.size() - 1) : "0 where there is no root"));
}

// The point as samples tell it: of reductions it says what is added.
Point with_datatype(const Point &point) {
  const Summands summands(static_cast<std::size_t>(point.integer("size_bytes")));
  if (point.has("datatype") && point.text("datatype") != summands.type_name())
    refuse("the plan gives size_bytes=" + point.text("size_bytes") + " datatype=" + point.text("datatype") +
           "; so many bytes are reduced as datatype=" + summands.type_name());
  return point.with("datatype", summands.type_name());
}

// A barrier brings nothing over that could be checked: the last rank is late, and nobody may be done before it comes.
// Each rank's own start may be a little after the late one's.
bool all_wait(const Task &task, const Operation &barrier) {
  const Operation late =
      with_late_ranks({barrier}, task.team, {task.team.size() - 1}, barrier_delay_s).front();
  const Series series = task.sampler.take(late);
  bool waited = true;
  for (const double time_s : series.rank_times_s) waited = waited && time_s > barrier_delay_s / 2;
  return waited;
}

// Quantity `delayed_completion`: entry k tells when each rank was done while rank delayed_ranks[k] came late.
void prove(const Task &task, const Point &point, std::vector<Operation> operations) {
  // The first call of a communicator makes connections, which must not look like waiting.
  for (Operation &operation : operations) operation.iterations = 1;
  task.sampler.take(operations);

  const std::vector<int> ranks = spread_ranks(task.team.size(), most_late_ranks);
  const double late_s = task.team.size() > many_ranks ? delay_among_many_s : delay_s;
  std::vector<std::string> numbers;
  for (const int rank : ranks) numbers.push_back(std::to_string(rank));
  operations = with_late_ranks(operations, task.team, ranks, late_s);
  std::vector<Series> all = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k) {
    // Each entry is another rank's: none is a warm-up, and no more are needed.
    all[k].warmup = 0;
    all[k].converged = true;
    operations[k].told = {{"delayed_ranks", json_array(numbers)}};
    task.sampler.write("collective", "delayed_completion", point.with("delay_s", json_number(late_s)), all[k],
                       operations[k], all[k].delivered);
  }
}

bool rests(const Team &team) { return team.oversubscribed() && team.one_host(); }

void measure_methods(const Task &task, const Point &point, MethodCommunicators &communicators) {
  const std::string name = point.text("operation");
  const int root = point.has("root") ? static_cast<int>(point.integer("root")) : 0;
  const Shape shape{task.team, static_cast<std::size_t>(point.integer("size_bytes")), root};
  const std::unique_ptr<Collective> collective = make_collective(name, shape);

  std::vector<std::unique_ptr<Algorithm>> algorithms;
  std::vector<Operation> operations;
  for (std::size_t method = 0; method < task.line.methods.size(); ++method) {
    Algorithm &algorithm = *algorithms.emplace_back(
        make_algorithm(read_method_name(task.line.methods[method]), name, *collective, communicators.of(method)));
    Operation operation;
    operation.method = task.line.methods[method];
    operation.prepare = [&, method](int iteration) {
      communicators.begin(method);
      if (rests(task.team)) sleep_until(now_s() + rest_s);
      collective->prepare(iteration);
      // One more than the harness's own, which so begins with all ranks awake.
      if (rests(task.team)) task.team.barrier();
    };
    operation.run = [&algorithm] { algorithm.run(); };
    operation.check = [&](int iteration) { return collective->received(iteration); };
    operation.reduction = Reduction::slowest_from_first;
    operation.keep_rank_times = true;
    operations.push_back(operation);
  }

  if (task.point.has("prove") && task.point.integer("prove") != 0) prove(task, point, operations);
  std::vector<bool> right;
  for (const Operation &operation : operations) right.push_back(name != "barrier" || all_wait(task, operation));
  const std::vector<Series> all = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k)
    task.sampler.write("collective", "completion", point, all[k], operations[k], all[k].delivered && right[k]);
}

void measure(const Task &task, std::unique_ptr<MethodCommunicators> &communicators) {
  Point point = task.point.without("prove");
  const std::string operation = point.text("operation");
  check_numbers(point, task.team, operation);
  if (operation == reduce_local || is_reduction(operation)) point = with_datatype(point);
  try {
    if (operation == reduce_local) {
      measure_reduce_local(task, point);
      return;
    }
    if (task.line.threads > 1) refuse("collective measures one thread of every rank; give --threads 1");
    if (task.line.methods.empty()) refuse("collective needs --methods, such as --methods default,own-linear,own-pipeline:8192");
    // Once for all points: making them takes long where ranks outnumber cores.
    if (!communicators) communicators = std::make_unique<MethodCommunicators>(task.team, task.line);
    measure_methods(task, point, *communicators);
  } catch (const std::bad_alloc &) {
    refuse("the plan gives operation=" + operation + " size_bytes=" + point.text("size_bytes") + " and there are " +
           std::to_string(task.team.size()) + " ranks: memory is short; give less");
  }
}

}  // namespace

int main(int argc, char **argv) {
  std::unique_ptr<MethodCommunicators> communicators;
  return kernel_main(argc, argv, need_several, [&](const Task &task) { measure(task, communicators); }, {},
                     [&] { communicators.reset(); });
}
