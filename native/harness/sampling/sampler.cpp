// Measures chunks of iterations; after each chunk rank 0 evaluates the series and decides for all ranks.
#include "harness/sampling/sampler.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "harness/machine/clock.hpp"
#include "harness/sampling/stop_rule.hpp"
#include "harness/text/json.hpp"

namespace earlybird {

namespace {

using Values = std::function<const std::vector<double> &()>;

std::size_t num_of(const Values &values) { return values ? values().size() : 0; }

void append(std::vector<double> &all, const Values &values) {
  if (values) all.insert(all.end(), values().begin(), values().end());
}

// Values per iteration and rank, in seconds: begin, end and delay, followed by the time of each thread, the durations and
// the moments.
constexpr std::size_t num_readings = 3;

std::size_t num_values(const Operation &operation) {
  return num_readings + num_of(operation.thread_times_s) + num_of(operation.durations_s) + num_of(operation.moments_s);
}

// The index of the `k`-th operation of a round of `count`: each is first equally often and follows both its neighbours.
std::size_t operation_index(int round, std::size_t k, std::size_t count) {
  const auto number = static_cast<std::size_t>(round);
  const std::size_t first = number % count;
  return (number / count) % 2 == 0 ? (first + k) % count : (first + count - k) % count;
}

// The warm-up has at least series.settling entries.
void apply_median_rule(Series &series, double target, int min_iterations) {
  if (series.times_s.size() <= series.settling) {
    series.warmup = series.times_s.empty() ? 0 : series.times_s.size() - 1;
    series.converged = false;
    return;
  }
  const auto begin = series.times_s.begin() + static_cast<std::ptrdiff_t>(series.settling);
  const std::vector<double> settled(begin, series.times_s.end());
  series.warmup = series.settling + warmup_count(settled);
  series.converged = stop_median(settled, target, min_iterations);
}

}  // namespace

Sampler::Sampler(Team &team, const Request &request, const std::string &launch_record) : team_(team), rules_(request.rules) {
  const ClockQuality clock = measure_clock();
  clock_resolution_s_ = std::max(clock.resolution_s, clock.overhead_s);
  if (team.rank() == 0) {
    out_ = std::fopen(request.out.c_str(), "w");
    if (out_ == nullptr) std::fprintf(stderr, "earlybird kernel: cannot write %s: %s\n", request.out.c_str(), std::strerror(errno));
  }
  if (!team.all(team.rank() != 0 || out_ != nullptr)) std::exit(1);
  if (out_ != nullptr) {
    std::fprintf(out_, "{\"launch_record\": %s}\n", launch_record.c_str());
    std::fflush(out_);
  }
}

Sampler::~Sampler() {
  if (out_ != nullptr) std::fclose(out_);
}

// Whether the time of an operation is the difference of clock readings of different ranks.
bool Sampler::compares_ranks(const Operation &operation) const {
  return operation.reduction == Reduction::delivery ||
         (operation.reduction == Reduction::slowest_from_first && team_.oversubscribed());
}

// Called before and after each chunk: drifting clocks are synchronized with comparisons from both sides of it.
void Sampler::compare_clocks(std::vector<Series> &all) {
  clocks_->compare();
  for (Series &series : all) {
    series.clock_residual_s = std::max(series.clock_residual_s, clocks_->residual_s());
    series.clock_round_trip_s = std::max(series.clock_round_trip_s, clocks_->round_trip_s());
  }
}

void Sampler::iterate(const Operation &operation, std::vector<double> &own, bool &delivered) {
  const int iteration = next_iteration_++;
  operation.prepare(iteration);
  team_.barrier();
  const double begin_s = stamp_s();
  operation.run();
  const double end_s = stamp_s();
  own.insert(own.end(), {begin_s, end_s, operation.delay_s ? operation.delay_s() : 0.0});
  append(own, operation.thread_times_s);
  append(own, operation.durations_s);
  append(own, operation.moments_s);
  if (operation.check && !operation.check(iteration)) delivered = false;
}

void Sampler::collect(const Operation &operation, const std::vector<double> &own, Series &series) {
  const std::vector<double> all = team_.gather(own);
  const bool from_rank_0 = operation.reduction == Reduction::delivery;
  const bool from_first = compares_ranks(operation) && !from_rank_0;
  const bool synchronised = needs_synchronising(operation);
  // The rank whose time is kept; -1 for the slowest.
  const int chosen_rank = operation.reduction == Reduction::rank_0 ? 0 : from_rank_0 ? team_.size() / 2 : -1;
  const auto moment_s = [&](int rank, std::size_t k) {
    const double read_s = all[static_cast<std::size_t>(rank) * own.size() + k];
    return synchronised ? clocks_->reference_s(rank, read_s) : read_s;
  };
  const std::size_t threads = num_of(operation.thread_times_s), half = static_cast<std::size_t>(team_.size()) / 2;
  const std::size_t durations = num_of(operation.durations_s), moments = num_of(operation.moments_s);
  for (std::size_t k = 0; team_.rank() == 0 && k < own.size(); k += num_values(operation)) {
    std::vector<double> moments_s;
    for (int r = 0; r < team_.size(); ++r) {
      const std::size_t first = k + num_readings + threads, own_first = static_cast<std::size_t>(r) * own.size() + first;
      for (std::size_t n = 0; n < durations; ++n) series.durations_s.push_back(all[own_first + n]);
      for (std::size_t n = 0; n < moments; ++n) moments_s.push_back(moment_s(r, first + durations + n) - moment_s(0, k));
    }
    series.moments_s.insert(series.moments_s.end(), moments_s.begin(), moments_s.end());
    const double delay_s = all[k + 2];
    double kept_s = 0, sum_s = 0, first_s = moment_s(0, k);
    for (int r = 1; from_first && r < team_.size(); ++r) first_s = std::min(first_s, moment_s(r, k));
    for (int r = 0; r < team_.size(); ++r) {
      const double begin_s = from_rank_0 || from_first ? first_s : moment_s(r, k);
      const double time_s = (moment_s(r, k + 1) - begin_s - delay_s) / operation.batch / operation.divisor;
      if (r == chosen_rank || (chosen_rank < 0 && (r == 0 || time_s > kept_s))) kept_s = time_s;
      sum_s += time_s;
      if (operation.keep_rank_times) series.rank_times_s.push_back(time_s);
    }
    if (operation.mean_over_ranks) kept_s = sum_s / team_.size();
    series.times_s.push_back(operation.time_of_moments ? operation.time_of_moments(moments_s) : kept_s);
    if (operation.delay_s) series.delays_s.push_back(delay_s);
    for (std::size_t pair = 0; pair < half * threads; ++pair) {
      const std::size_t first = pair / threads * own.size() + k + num_readings + pair % threads;
      const double time_s = std::max(all[first], all[first + half * own.size()]);
      series.thread_times_s.push_back(time_s / operation.batch / operation.divisor);
    }
  }
}

void Sampler::measure_rounds(const std::vector<Operation> &operations, int first, int count, std::vector<Series> &all) {
  std::vector<std::vector<double>> own(operations.size());
  for (round_ = first; round_ < first + count; ++round_) {
    for (std::size_t k = 0; k < operations.size(); ++k) {
      const std::size_t which = operation_index(round_, k, operations.size());
      iterate(operations[which], own[which], all[which].delivered);
    }
  }
  if (needs_synchronising(operations.front())) compare_clocks(all);
  for (std::size_t which = 0; which < operations.size(); ++which) collect(operations[which], own[which], all[which]);
}

// One warm-up iteration, then the counted iterations. The entries of earlier attempts are kept but not used.
bool Sampler::apply_paper_rule(Series &series) const {
  series.warmup = series.times_s.size() - static_cast<std::size_t>(rules_.paper_iterations);
  const std::vector<double> counted(series.times_s.begin() + static_cast<std::ptrdiff_t>(series.warmup), series.times_s.end());
  return series.converged = stop_paper(counted, rules_.t_quantile, rules_.paper_target);
}

// The number of iterations that are measured by the median rule even beyond the budget, enough for an interval.
int Sampler::least_iterations(const Operation &operation) const {
  return operation.cold ? std::min(rules_.min_iterations, rules_.min_cold_iterations) : rules_.min_iterations;
}

// The number of rounds to measure next by the median rule if one takes `round_s` and all have taken `spent_s`, and every
// point needs `least`; 0 to stop.
int Sampler::next_rounds(std::vector<Series> &all, int least, int taken, double round_s, double spent_s) const {
  bool converged = true;
  int missing = 0;
  for (Series &series : all) {
    apply_median_rule(series, rules_.target, rules_.min_iterations);
    converged = converged && series.converged;
    const std::size_t steady = series.times_s.size() - series.warmup;
    missing = std::max(missing, least - static_cast<int>(steady));
  }
  if (converged) return 0;
  // Grow the series by half each time, but not beyond the remaining budget at the current pace.
  const double affordable = (rules_.budget_s - spent_s) / round_s;
  const double grown = std::min<double>({taken / 2.0 + 1, affordable, double(rules_.max_iterations - taken)});
  const double allowed = std::max((rules_.most_s - spent_s) / round_s, 0.0);
  return static_cast<int>(std::min(std::max({grown, double(missing), 0.0}), allowed));
}

// Rounds of the operations that have to settle; returns how many.
int Sampler::settle(const std::vector<Operation> &operations, std::vector<Series> &all) {
  int rounds = 0;
  for (std::size_t k = 0; k < operations.size(); ++k) {
    all[k].settling = static_cast<std::size_t>(operations[k].settling);
    rounds = std::max(rounds, operations[k].settling);
  }
  for (std::size_t k = 0; k < operations.size(); ++k) {
    if (operations[k].settling == 0) {
      all[k].first_round = rounds;
      continue;
    }
    std::vector<double> own;
    for (round_ = 0; round_ < rounds; ++round_) iterate(operations[k], own, all[k].delivered);
    if (needs_synchronising(operations[k])) compare_clocks(all);
    collect(operations[k], own, all[k]);
  }
  return rounds;
}

Series Sampler::take(const Operation &operation) { return take(std::vector<Operation>{operation}).front(); }

std::vector<Series> Sampler::take(const std::vector<Operation> &operations) {
  const bool paper = rules_.mode == "paper";
  const double begin_s = now_s();
  std::vector<Series> all(operations.size());
  const int fixed_iterations = operations.front().iterations;
  // Either all operations of a point compare ranks, or none.
  if (needs_synchronising(operations.front())) {
    if (!clocks_) clocks_ = std::make_unique<ClockSync>(team_);
    clocks_->compare();
  }
  const int settling = settle(operations, all);
  const double settled_s = now_s();
  const int least = least_iterations(operations.front());
  // The first round shows how long one takes: seconds, where many ranks share few cores and wait by spinning.
  int chunk = fixed_iterations > 0 ? fixed_iterations : paper ? rules_.paper_iterations + 1 : 1;
  int taken = 0, retries = 0;
  while (chunk > 0) {
    measure_rounds(operations, settling + taken, chunk, all);
    taken += chunk;
    int next = 0;
    if (team_.rank() == 0 && fixed_iterations > 0) {
      for (Series &series : all) apply_median_rule(series, rules_.target, 1);
    } else if (team_.rank() == 0 && paper) {
      bool converged = true;
      for (Series &series : all) converged = apply_paper_rule(series) && converged;
      if (!converged && retries++ < rules_.paper_retries) next = chunk;
    } else if (team_.rank() == 0) {
      const double end_s = now_s();
      next = next_rounds(all, least, taken, (end_s - settled_s) / taken, end_s - begin_s);
    }
    chunk = team_.broadcast(next);
  }
  return all;
}

int Sampler::choose_batch(const std::function<void(int)> &run_batch, double min_region_s) {
  if (clock_resolution_s_ == 0) return 1;  // simulated clocks are exact
  const double target_region_s = std::max(1000 * clock_resolution_s_, min_region_s);
  int batch = 1;
  while (true) {
    run_batch(batch);  // not timed: the first message of a size may set up connections and map memory
    team_.barrier();
    const double begin_s = now_s();
    run_batch(batch);
    const double time_s = team_.broadcast(now_s() - begin_s);
    if (time_s >= target_region_s || batch >= 1 << 20) return batch;
    batch *= 2;
  }
}

void Sampler::write(const std::string &kernel, const std::string &quantity, const Point &point, const Series &series,
                    const Operation &operation, bool validated, double requested_delay_s) {
  const bool all_validated = team_.all(validated);
  bool written = true;
  if (out_ != nullptr) {
    JsonObject object;
    object.add("kernel", json_text(kernel)).add("quantity", json_text(quantity));
    if (!operation.method.empty()) object.add("method", json_text(operation.method));
    object.add("config", point.config_json());
    object.add("times_s", json_array(series.times_s));
    if (!operation.method.empty()) {
      std::vector<int> rounds(series.times_s.size());
      std::iota(rounds.begin(), rounds.end(), series.first_round);
      object.add("rounds", json_array(rounds));
    }
    if (operation.keep_rank_times)
      object.add("rank_times_s", json_rows(series.rank_times_s, static_cast<std::size_t>(team_.size())));
    if (operation.thread_times_s) {
      const std::size_t pairs = static_cast<std::size_t>(team_.size()) / 2 * num_of(operation.thread_times_s);
      object.add("thread_times_s", json_rows(series.thread_times_s, pairs));
    }
    if (operation.delay_s) {
      object.add("delay_s", json_number(requested_delay_s)).add("delays_s", json_array(series.delays_s));
    }
    if (compares_ranks(operation)) object.add("clock", json_text(team_.one_clock() ? "one" : "synchronised"));
    else if (operation.reduction == Reduction::slowest_from_first) object.add("clock", json_text("each rank's own"));
    if (needs_synchronising(operation)) {
      object.add("clock_residual_s", json_number(series.clock_residual_s));
      object.add("clock_round_trip_s", json_number(series.clock_round_trip_s));
    }
    for (const auto &[key, json] : operation.extra_members) object.add(key, json);
    object.add("warmup", std::to_string(series.warmup));
    object.add("batch", std::to_string(operation.batch));
    object.add("converged", json_bool(series.converged));
    object.add("oversubscribed", json_bool(team_.oversubscribed()));
    object.add("validated", json_bool(all_validated));
    written = std::fprintf(out_, "%s\n", object.str().c_str()) > 0 && std::fflush(out_) == 0;
    if (!written) std::fprintf(stderr, "earlybird kernel: cannot write samples: %s\n", std::strerror(errno));
  }
  if (!team_.all(written)) std::exit(1);
}

}  // namespace earlybird
