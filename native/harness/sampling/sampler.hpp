// Takes the samples of one point: repeats one operation, or several interleaved, on all ranks until the stop rule is
// satisfied. Rank 0 then writes one line per operation to the samples file.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/clocks/clock_sync.hpp"
#include "harness/request/request.hpp"
#include "harness/team/team.hpp"

namespace earlybird {

struct Series {
  std::vector<double> times_s;       // one per iteration
  std::vector<double> rank_times_s;  // by iteration, then by rank
  std::vector<double> delays_s;      // one per iteration if the operation has delays; subtracted from times_s
  std::vector<double> thread_times_s;  // by iteration, then by pair of threads
  std::vector<double> durations_s;     // by iteration, then by rank, then as the operation gives them
  std::vector<double> moments_s;       // likewise
  int first_round = 0;                 // that of times_s[0]
  std::size_t warmup = 0;
  std::size_t settling = 0;  // lower bound for warmup, from the operation
  bool converged = false;
  bool delivered = true;  // whether `check` returned true on this rank in every iteration
  // Set if node clocks were synchronized: ClockSync's values, each the maximum over all comparisons.
  double clock_residual_s = 0, clock_round_trip_s = 0;
};

// Which time is kept for an iteration. rank_0: rank 0's, for the round trip of a ping-pong. delivery: from rank 0's start to
// the end of its pair, rank size/2; clocks of several nodes are synchronized for it.
//
// slowest_from_first: the slowest rank's, each from its own start unless ranks share cores. A rank that waits for its core
// leaves the barrier long after others have sent to it, and would seem faster than the link. In this case each time
// starts when the first rank leaves the barrier, on synchronized clocks.
enum class Reduction { slowest_rank, slowest_from_first, rank_0, delivery };

// What a kernel measures at one point. `prepare` fills buffers outside the timed region; the timed region lasts from the
// harness's barrier until `run` returns.
struct Operation {
  std::string method;  // the name of the method if a point has several, else empty
  std::function<void(int iteration)> prepare;
  std::function<void()> run;
  std::function<bool(int iteration)> check;  // after the timed region: whether this rank received the right data; may be empty
  std::function<double()> delay_s;  // the deliberate delay of the last `run`, called on rank 0; may be empty
  // The time of each thread of this rank in the last `run`; may be empty. Thread t of rank r and thread t of rank
  // r + size/2 form a pair; the longer of their times is kept.
  std::function<const std::vector<double> &()> thread_times_s;
  // Further times of this rank in the last `run`, as many on every rank; may be empty.
  std::function<const std::vector<double> &()> durations_s;
  // Moments of this rank in the last `run` by stamp_s(), as many on every rank; may be empty. They are kept as seconds
  // since rank 0's start, on its clock; `time_of_moments`, if it is not empty, gives the time of an iteration from those of
  // all ranks in rank order.
  std::function<const std::vector<double> &()> moments_s;
  std::function<double(const std::vector<double> &moments_s)> time_of_moments;
  int batch = 1;          // operations inside one `run`; times are divided by it
  double divisor = 1;     // further division, such as 2 for half a round trip
  Reduction reduction = Reduction::slowest_rank;
  bool keep_rank_times = false;
  bool mean_over_ranks = false;  // keep the mean of the ranks' times instead of the slowest rank's
  int iterations = 0;  // exact number for operations that are long by design; 0 uses the stop rule
  std::vector<std::pair<std::string, std::string>> extra_members;  // further members of the sample, in JSON
  int settling = 0;    // iterations until the method has adapted; they always count as warm-up
  bool cold = false;   // `prepare` empties the caches, which takes long: fewer iterations are measured beyond the budget
};

class Sampler {
 public:
  // Opens the scratch file on rank 0 and writes `launch_record`, a JSON object, as its first line. Collective.
  Sampler(Team &team, const Request &request, const std::string &launch_record);
  ~Sampler();
  Sampler(const Sampler &) = delete;
  Sampler &operator=(const Sampler &) = delete;

  // Repeats `operation` by the stop rule. Collective; the result is complete on rank 0 only. `last_iteration` returns
  // the number of the iteration whose data is in the buffers.
  Series take(const Operation &operation);

  // Repeats all `operations` in rounds, each once per round in changing order, until the stop rule is satisfied for all of
  // them. In the first rounds only those take part that have to settle. Entry k of a series was measured in round
  // first_round + k.
  std::vector<Series> take(const std::vector<Operation> &operations);
  int last_iteration() const { return next_iteration_ - 1; }
  // The round of the present iteration: equal for operations whose times are compared.
  int round() const { return round_; }

  // The smallest batch for which `run_batch(batch)` takes long compared with the clock resolution, and at least
  // `min_region_s`. Collective.
  int choose_batch(const std::function<void(int batch)> &run_batch, double min_region_s = 200e-6);

  // Appends the sample of `point`. Collective: `validated` states on every rank whether the data it received was right.
  // A sample with a method has its rounds; one with delays has the requested (`requested_delay_s`) and actual delays.
  void write(const std::string &kernel, const std::string &quantity, const Point &point, const Series &series,
             const Operation &operation, bool validated, double requested_delay_s = 0);

 private:
  bool compares_ranks(const Operation &operation) const;
  bool needs_synchronising(const Operation &operation) const { return compares_ranks(operation) && !team_.one_clock(); }
  void compare_clocks(std::vector<Series> &all);
  void iterate(const Operation &operation, std::vector<double> &own, bool &delivered);
  void collect(const Operation &operation, const std::vector<double> &own, Series &series);
  void measure_rounds(const std::vector<Operation> &operations, int first, int count, std::vector<Series> &all);
  int settle(const std::vector<Operation> &operations, std::vector<Series> &all);
  bool apply_paper_rule(Series &series) const;
  int least_iterations(const Operation &operation) const;
  int next_rounds(std::vector<Series> &all, int least, int taken, double round_s, double spent_s) const;

  Team &team_;
  StopRules rules_;
  double clock_resolution_s_;
  std::unique_ptr<ClockSync> clocks_;  // created when first needed; never if all ranks read one clock
  int next_iteration_ = 0, round_ = 0;
  std::FILE *out_ = nullptr;
};

}  // namespace earlybird
