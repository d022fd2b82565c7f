// Takes the samples of one point: repeats an operation on all ranks until the stop rule is content, then hands rank 0
// one line for the samples file.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "harness/command_line.hpp"
#include "harness/plan.hpp"
#include "harness/team.hpp"

namespace earlybird {

struct Series {
  std::vector<double> times_s;       // one per iteration
  std::vector<double> rank_times_s;  // iteration after iteration, rank after rank
  std::size_t warmup = 0;
  bool converged = false;
};

// Which rank's time stands for an iteration: a ping-pong's round trip is rank 0's alone.
enum class Reduction { slowest_rank, rank_0 };

// What a kernel measures at one point. `prepare` fills buffers outside the timed region, `run` is timed between the
// harness's barrier and its own return.
struct Operation {
  std::function<void(int iteration)> prepare;
  std::function<void()> run;
  int batch = 1;          // operations inside one `run`; times are divided by it
  double divisor = 1;     // further division, such as 2 for half a round trip
  Reduction reduction = Reduction::slowest_rank;
  bool keep_rank_times = false;
};

class Sampler {
 public:
  // Opens the scratch file on rank 0 and writes the launch record as its first line. Collective.
  Sampler(Team &team, const CommandLine &line, int thread_level);
  ~Sampler();
  Sampler(const Sampler &) = delete;
  Sampler &operator=(const Sampler &) = delete;

  // Repeats `operation` by the stop rule. Collective; the result is complete on rank 0 alone. `last_iteration` returns
  // the number of the iteration whose data the buffers hold.
  Series take(const Operation &operation);
  int last_iteration() const { return next_iteration_ - 1; }

  // Smallest batch that makes one timed region of `run_batch(batch)` long against the clock. Collective.
  int choose_batch(const std::function<void(int batch)> &run_batch);

  // Appends the sample of `point`. Collective: every rank says whether the data it received was right.
  void write(const std::string &kernel, const std::string &quantity, const Point &point, const Series &series,
             const Operation &operation, bool validated);

 private:
  void iterate(const Operation &operation, int count, std::vector<double> &own_times_s);
  void collect(const Operation &operation, const std::vector<double> &own_times_s, Series &series);

  Team &team_;
  StopRules rules_;
  double clock_resolution_s_;
  int next_iteration_ = 0;
  std::FILE *out_ = nullptr;
};

}  // namespace earlybird
