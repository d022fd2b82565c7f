// Takes the samples of one point: repeats one operation, or several interleaved, on all ranks until the stop rule is
// content, then hands rank 0 one line for the samples file per operation.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/clock_sync.hpp"
#include "harness/command_line.hpp"
#include "harness/plan.hpp"
#include "harness/team.hpp"

namespace earlybird {

struct Series {
  std::vector<double> times_s;       // one per iteration
  std::vector<double> rank_times_s;  // iteration after iteration, rank after rank
  std::vector<double> delays_s;      // one per iteration where the operation has delays; subtracted from times_s
  std::vector<double> thread_times_s;  // iteration after iteration, pair of threads after pair
  std::size_t warmup = 0;
  std::size_t settling = 0;  // of them at least so many, as the operation says
  bool converged = false;
  bool delivered = true;  // what `check` found on this rank in every iteration
  // Where clocks of nodes were put on one scale: ClockSync's figures, each the worst of all times they were compared.
  double clock_residual_s = 0, clock_round_trip_s = 0;
};

// Which time stands for an iteration: a ping-pong's round trip is rank 0's alone; a delivery lasts from rank 0's start to
// rank 1's end. Clocks of several nodes are put on one scale for it.
//
// slowest_from_first is the slowest rank's, each from its own start unless ranks share cores: a rank that waits for its
// core leaves the barrier when others have long sent to it, and would seem faster than the link. Each then counts from
// the moment at which the first rank left, on one scale.
enum class Reduction { slowest_rank, slowest_from_first, rank_0, delivery };

// What a kernel measures at one point. `prepare` fills buffers outside the timed region, `run` is timed between the
// harness's barrier and its own return.
struct Operation {
  std::string method;  // its name among several at one point; empty where there is one
  std::function<void(int iteration)> prepare;
  std::function<void()> run;
  std::function<bool(int iteration)> check;  // after the timed region: whether this rank got what it should; may be empty
  std::function<double()> delay_s;  // how long the last `run` was delayed on purpose, asked on rank 0; may be empty
  // How long each thread of this rank took in the last `run`; may be empty. Thread t of a rank of the first half and of
  // the rank as far into the second half are the two ends of one pair: the longer time of both is kept.
  std::function<const std::vector<double> &()> thread_times_s;
  int batch = 1;          // operations inside one `run`; times are divided by it
  double divisor = 1;     // further division, such as 2 for half a round trip
  Reduction reduction = Reduction::slowest_rank;
  bool keep_rank_times = false;
  int iterations = 0;  // exactly so many, for an operation that is long by design; 0 leaves it to the stop rule
  std::vector<std::pair<std::string, std::string>> told;  // further members of the sample, in JSON
  int settling = 0;    // iterations after which what is measured no longer learns: warm-up, whatever they took
};

class Sampler {
 public:
  // Opens the scratch file on rank 0 and writes `launch_record`, a JSON object, as its first line. Collective.
  Sampler(Team &team, const CommandLine &line, const std::string &launch_record);
  ~Sampler();
  Sampler(const Sampler &) = delete;
  Sampler &operator=(const Sampler &) = delete;

  // Repeats `operation` by the stop rule. Collective; the result is complete on rank 0 alone. `last_iteration` returns
  // the number of the iteration whose data the buffers hold.
  Series take(const Operation &operation);

  // Repeats all `operations` in rounds, each once per round and in an order that changes, until the stop rule is content
  // with every one: entry k of each series was measured in round k.
  std::vector<Series> take(const std::vector<Operation> &operations);
  int last_iteration() const { return next_iteration_ - 1; }

  // Smallest batch that makes one timed region of `run_batch(batch)` long against the clock, and at least so long.
  // Collective.
  int choose_batch(const std::function<void(int batch)> &run_batch, double at_least_s = 200e-6);

  // Appends the sample of `point`. Collective: every rank says whether the data it received was right. A sample with a
  // method tells its rounds; one with delays what was asked for (`asked_delay_s`), what was waited, and whose clock was read.
  void write(const std::string &kernel, const std::string &quantity, const Point &point, const Series &series,
             const Operation &operation, bool validated, double asked_delay_s = 0);

 private:
  bool compares_ranks(const Operation &operation) const;
  bool needs_synchronising(const Operation &operation) const { return compares_ranks(operation) && !team_.one_clock(); }
  void compare_clocks(std::vector<Series> &all);
  void iterate(const Operation &operation, std::vector<double> &own, bool &delivered);
  void collect(const Operation &operation, const std::vector<double> &own, Series &series);
  void measure_rounds(const std::vector<Operation> &operations, int first, int count, std::vector<Series> &all);
  bool judge_paper(Series &series) const;
  int next_rounds(std::vector<Series> &all, double spent_s) const;

  Team &team_;
  StopRules rules_;
  double clock_resolution_s_;
  std::unique_ptr<ClockSync> clocks_;  // made when first needed, and so never where all ranks read one clock
  int next_iteration_ = 0;
  std::FILE *out_ = nullptr;
};

}  // namespace earlybird
