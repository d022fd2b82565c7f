// Collective: one collective operation with several methods, interleaved; the time ends when the slowest rank has its
// result. Methods are our own algorithms on point-to-point calls, the MPI's algorithms selected by control variables or
// environment, and the MPI's default; each has its own communicator.
//
// Each call is timed separately, after the harness's barrier: consecutive calls overlap, because a rank that has finished
// one call begins the next while others are still in the first. A batch would measure a call rate instead.
#include <algorithm>
#include <climits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/machine/clock.hpp"
#include "harness/text/json.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/collectives/late_ranks.hpp"
#include "kernels/collectives/method_communicators.hpp"
#include "kernels/collectives/parts/summands.hpp"
#include "kernels/collectives/reduce_local.hpp"
#include "kernels/collectives/registry.hpp"

using namespace earlybird;

namespace {

// The verification: long compared with small messages and scheduling delays; shorter for many ranks, of which more may be late.
constexpr double delay_s = 0.1, delay_many_ranks_s = 0.05;
constexpr int many_ranks = 8, max_late_ranks = 16;
// If ranks share cores, all ranks sleep this long before each call. A rank that spins in a call, as in some of the MPI's
// algorithms, uses more CPU time than others; the scheduler then delays it by milliseconds in the next call, which is
// another method's. On two cores with 4 ranks of MPICH 5.0.2, our own 8-byte broadcast interleaved with the MPI's took
// 200 us and the MPI's 5 ms; with this sleep 26 us and 48 us. Not between hosts: there is no shared memory to spin on, and
// the token bucket of a virtual link would fill during the sleep and let the first bytes of the next call pass at once.
constexpr double rest_s = 1e-3;
// Only to check that a barrier waits. Long compared with the time that a rank may be without its core. If ranks lose their
// cores even so, another try shows whether it was that.
constexpr double barrier_delay_s = 20e-3;
constexpr int barrier_tries = 3;

const std::string reduce_local = "reduce_local";

void require_two_ranks(const Team &team) {
  if (team.size() < 2) refuse("collective needs at least 2 ranks");
}

void check_point(const Point &point, const Team &team, const std::string &operation) {
  const std::string ranks = std::to_string(team.size());
  const int size_bytes = point.integer("size_bytes", 0, INT_MAX);
  if (operation == "barrier" && size_bytes != 0)
    refuse("the request gives operation=barrier size_bytes=" + std::to_string(size_bytes) +
           "; a barrier has no data: give size_bytes=0");
  if (point.has("ranks") && point.integer("ranks") != team.size())
    refuse("the request gives ranks=" + point.text("ranks") + " and the launch has " + ranks + " ranks; give the same number");
  const bool rooted = operation != reduce_local && has_root(operation);
  const long long root = rooted || point.has("root") ? point.integer("root") : 0;
  if (root < 0 || root >= team.size() || (!rooted && root != 0))
    refuse("the request gives operation=" + operation + " root=" + point.text("root") + " on " + ranks + " ranks; give " +
           (rooted ? "0 to " + std::to_string(team.size() - 1) : "0 for an operation without a root"));
  const bool counted = operation != reduce_local && has_counts(operation);
  const bool between_neighbours = operation != reduce_local && has_topology(operation);
  if (point.has("skew") && !counted)
    refuse("the request gives skew for operation=" + operation + ", whose blocks are all equal; leave it out");
  if (point.has("topology") && !between_neighbours)
    refuse("the request gives topology for operation=" + operation + ", in which all ranks take part; leave it out");
}

// The skew of the counts. Each rank has as many blocks as it has destinations.
double skew_of(const Point &point, int num_blocks) {
  const double skew = point.number("skew");
  if (skew < 1 || skew > num_blocks)
    refuse("the request gives skew=" + point.text("skew") + " and a rank has " + std::to_string(num_blocks) +
           (num_blocks == 1 ? " block" : " blocks") + "; give 1 to " + std::to_string(num_blocks) +
           ", the largest block divided by the mean");
  return skew;
}

struct NamedTopology {
  std::string name;
  Topology topology;
};

std::optional<NamedTopology> topology_of(const Point &point, const Team &team, const std::string &operation) {
  if (!has_topology(operation)) return std::nullopt;
  const std::string name = point.text("topology");
  return NamedTopology{name, Topology(name, team.size())};
}

Shape shape_of(const Point &point, Team &team, const std::string &operation, const std::optional<NamedTopology> &named) {
  Shape shape{team, static_cast<std::size_t>(point.integer("size_bytes"))};
  if (point.has("root")) shape.root = static_cast<int>(point.integer("root"));
  if (named) shape.topology = &named->topology;
  // In every topology, all ranks have the same number of destinations.
  const std::size_t num_blocks = named ? named->topology.destinations(0).size() : static_cast<std::size_t>(team.size());
  if (has_counts(operation)) shape.skew = skew_of(point, static_cast<int>(num_blocks));
  return shape;
}

// The point as recorded in samples: for reductions, with the datatype.
Point with_datatype(const Point &point) {
  const Summands summands(static_cast<std::size_t>(point.integer("size_bytes")));
  if (point.has("datatype") && point.text("datatype") != summands.type_name())
    refuse("the request gives size_bytes=" + point.text("size_bytes") + " datatype=" + point.text("datatype") +
           "; this size is reduced as datatype=" + summands.type_name());
  return point.with("datatype", summands.type_name());
}

// Whether all ranks waited for the last one, which was late. A rank that begins later itself waits for less than the delay.
bool all_ranks_wait(const Task &task, const Operation &barrier) {
  const Operation late = with_late_ranks({barrier}, task.team, {task.team.size() - 1}, barrier_delay_s).front();
  const Series series = task.sampler.take(late);
  const bool waited = std::all_of(series.rank_times_s.begin(), series.rank_times_s.end(),
                                  [](double time_s) { return time_s > barrier_delay_s / 2; });
  return task.team.broadcast(waited ? 1 : 0) != 0;  // rank 0 has the times
}

// A barrier transfers no data that could be checked. Instead no rank may finish before the late rank arrives.
bool barrier_waits(const Task &task, const Operation &barrier) {
  for (int k = 0; k < barrier_tries; ++k) {
    if (all_ranks_wait(task, barrier)) return true;
  }
  return false;
}

// Quantity `delayed_completion`: entry k has each rank's completion time when rank delayed_ranks[k] is late.
void verify(const Task &task, const Point &point, std::vector<Operation> operations) {
  // The first call on a communicator sets up connections, which must not be mistaken for waiting.
  for (Operation &operation : operations) operation.iterations = 1;
  task.sampler.take(operations);

  const std::vector<int> ranks = spread_ranks(task.team.size(), max_late_ranks);
  const double late_s = task.team.size() > many_ranks ? delay_many_ranks_s : delay_s;
  operations = with_late_ranks(operations, task.team, ranks, late_s);
  std::vector<Series> all = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k) {
    // Each entry is for another rank: none is a warm-up, and no more are needed.
    all[k].warmup = 0;
    all[k].converged = true;
    operations[k].extra_members = {{"delayed_ranks", json_array(ranks)}};
    task.sampler.write("collective", "delayed_completion", point.with("delay_s", late_s), all[k], operations[k], all[k].delivered);
  }
}

bool needs_rest(const Team &team) { return team.oversubscribed() && team.one_host(); }

void measure_methods(const Task &task, const Point &point, MethodCommunicators &communicators) {
  const std::string name = point.text("operation");
  const std::optional<NamedTopology> named = topology_of(point, task.team, name);
  const std::unique_ptr<Collective> collective = make_collective(name, shape_of(point, task.team, name, named));

  std::vector<std::unique_ptr<Algorithm>> algorithms;
  std::vector<Operation> operations;
  for (std::size_t method = 0; method < task.request.methods.size(); ++method) {
    const MPI_Comm comm = named ? communicators.of(method, named->name, named->topology) : communicators.of(method);
    communicators.begin(method);  // the initialisation of a persistent call selects its algorithm
    Algorithm &algorithm = *algorithms.emplace_back(make_algorithm(read_method_name(task.request.methods[method]), name,
                                                                   *collective, comm));
    Operation operation;
    operation.method = task.request.methods[method];
    operation.prepare = [&, method](int iteration) {
      communicators.begin(method);
      if (needs_rest(task.team)) sleep_until(now_s() + rest_s);
      collective->prepare(iteration);
      // An additional barrier, so that the harness's barrier begins with all ranks awake.
      if (needs_rest(task.team)) task.team.barrier();
    };
    operation.run = [&algorithm] { algorithm.run(); };
    operation.check = [&](int iteration) { return collective->received(iteration); };
    operation.reduction = Reduction::slowest_from_first;
    operation.keep_rank_times = true;
    operations.push_back(operation);
  }

  if (task.point.has("verify") && task.point.integer("verify") != 0) verify(task, point, operations);
  std::vector<bool> waited;
  for (const Operation &operation : operations) waited.push_back(name != "barrier" || barrier_waits(task, operation));
  const std::string quantity = task.request.mean_over_ranks ? "mean_over_ranks" : "completion";
  for (Operation &operation : operations) operation.mean_over_ranks = task.request.mean_over_ranks;
  const std::vector<Series> all = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k)
    task.sampler.write("collective", quantity, point, all[k], operations[k], all[k].delivered && waited[k]);
}

void measure(const Task &task, std::unique_ptr<MethodCommunicators> &communicators) {
  Point point = task.point.without("verify");
  const std::string operation = point.text("operation");
  check_point(point, task.team, operation);
  if (operation == reduce_local || is_reduction(operation)) point = with_datatype(point);
  try {
    if (operation == reduce_local) {
      measure_reduce_local(task, point);
      return;
    }
    if (task.request.threads > 1) refuse("collective uses one thread per rank; give threads=1");
    if (task.request.methods.empty()) refuse("collective needs methods, such as default, own-linear, own-pipeline:8192");
    // Created once for all points: creation takes long if there are more ranks than cores.
    if (!communicators) communicators = std::make_unique<MethodCommunicators>(task.team, task.request);
    measure_methods(task, point, *communicators);
  } catch (const std::bad_alloc &) {
    refuse("the request gives operation=" + operation + " size_bytes=" + point.text("size_bytes") + " for " +
           std::to_string(task.team.size()) + " ranks: out of memory; give a smaller size");
  }
}

}  // namespace

int main(int argc, char **argv) {
  std::unique_ptr<MethodCommunicators> communicators;
  return kernel_main(
      argc, argv, require_two_ranks, [&](const Task &task) { measure(task, communicators); }, {}, [&] { communicators.reset(); });
}
