// Chunks of iterations, between which rank 0 looks at the series and decides for all.
#include "harness/sampler.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/clock.hpp"
#include "harness/json.hpp"
#include "harness/launch_record.hpp"

namespace earlybird {

Sampler::Sampler(Team &team, const CommandLine &line, int thread_level) : team_(team), rules_(line.rules) {
  const std::string record = record_launch(team, thread_level);
  const ClockQuality clock = measure_clock();
  clock_resolution_s_ = std::max(clock.resolution_s, clock.overhead_s);
  if (team.rank() == 0) {
    out_ = std::fopen(line.out.c_str(), "w");
    if (out_ == nullptr) std::fprintf(stderr, "earlybird kernel: cannot write %s: %s\n", line.out.c_str(), std::strerror(errno));
  }
  if (!team.all(team.rank() != 0 || out_ != nullptr)) std::exit(1);
  if (out_ != nullptr) {
    std::fprintf(out_, "{\"launch_record\": %s}\n", record.c_str());
    std::fflush(out_);
  }
}

Sampler::~Sampler() {
  if (out_ != nullptr) std::fclose(out_);
}

void Sampler::iterate(const Operation &operation, int count, std::vector<double> &own_times_s) {
  for (int k = 0; k < count; ++k) {
    operation.prepare(next_iteration_++);
    team_.barrier();
    const double begin_s = now_s();
    operation.run();
    own_times_s.push_back((now_s() - begin_s) / operation.batch / operation.divisor);
  }
}

void Sampler::collect(const Operation &operation, const std::vector<double> &own_times_s, Series &series) {
  const std::vector<double> all = team_.gather(own_times_s);
  const std::size_t num_iterations = own_times_s.size();
  for (std::size_t k = 0; team_.rank() == 0 && k < num_iterations; ++k) {
    double slowest_s = all[k];
    for (int r = 0; r < team_.size(); ++r) {
      const double time_s = all[static_cast<std::size_t>(r) * num_iterations + k];
      if (operation.reduction == Reduction::slowest_rank) slowest_s = std::max(slowest_s, time_s);
      if (operation.keep_rank_times) series.rank_times_s.push_back(time_s);
    }
    series.times_s.push_back(slowest_s);
  }
}

Series Sampler::take(const Operation &operation) {
  const bool paper = rules_.mode == "paper";
  const double begin_s = now_s();
  Series series;
  int chunk = paper ? rules_.paper_iterations + 1 : rules_.min_iterations;
  int retries = 0;
  while (chunk > 0) {
    std::vector<double> own_times_s;
    iterate(operation, chunk, own_times_s);
    collect(operation, own_times_s, series);
    int next = 0;
    if (team_.rank() == 0 && paper) {
      // One warm-up, then the counted iterations. What an earlier attempt took is kept, as entries not used.
      series.warmup = series.times_s.size() - static_cast<std::size_t>(rules_.paper_iterations);
      const std::vector<double> counted(series.times_s.begin() + static_cast<std::ptrdiff_t>(series.warmup),
                                        series.times_s.end());
      series.converged = stop_paper(counted, rules_.t_quantile, rules_.paper_target);
      if (!series.converged && retries++ < rules_.paper_retries) next = chunk;
    } else if (team_.rank() == 0) {
      series.warmup = warmup_count(series.times_s);
      series.converged = stop_median(series.times_s, rules_.target, rules_.min_iterations);
      const int taken = static_cast<int>(series.times_s.size());
      const double spent_s = now_s() - begin_s;
      // Grow the series by half each time, but not past what the budget has left at the pace so far.
      const double affordable = (rules_.budget_s - spent_s) / (spent_s / taken);
      if (!series.converged) next = static_cast<int>(std::min<double>({taken / 2.0 + 1, affordable,
                                                                        double(rules_.max_iterations - taken)}));
      // Every point gets enough iterations for an interval, whatever the budget says.
      const int steady = taken - static_cast<int>(series.warmup);
      if (steady < rules_.min_iterations) next = std::max(next, rules_.min_iterations - steady);
      next = std::max(next, 0);
    }
    chunk = team_.broadcast(next);
  }
  return series;
}

int Sampler::choose_batch(const std::function<void(int)> &run_batch) {
  const double long_enough_s = std::max(1000 * clock_resolution_s_, 200e-6);
  int batch = 1;
  while (true) {
    run_batch(batch);  // not looked at: the first message of a size may set up connections and map memory
    team_.barrier();
    const double begin_s = now_s();
    run_batch(batch);
    const double time_s = team_.broadcast(now_s() - begin_s);
    if (time_s >= long_enough_s || batch >= 1 << 20) return batch;
    batch *= 2;
  }
}

void Sampler::write(const std::string &kernel, const std::string &quantity, const Point &point, const Series &series,
                    const Operation &operation, bool validated) {
  const bool all_validated = team_.all(validated);
  bool written = true;
  if (out_ != nullptr) {
    JsonObject object;
    object.add("kernel", json_text(kernel)).add("quantity", json_text(quantity));
    object.add("config", point.config_json());
    object.add("times_s", json_array(series.times_s));
    if (operation.keep_rank_times) {
      std::vector<std::string> rows;
      const auto width = static_cast<std::ptrdiff_t>(team_.size());
      for (auto row = series.rank_times_s.begin(); row != series.rank_times_s.end(); row += width)
        rows.push_back(json_array(std::vector<double>(row, row + width)));
      object.add("rank_times_s", json_array(rows));
    }
    object.add("warmup", json_number(static_cast<long long>(series.warmup)));
    object.add("batch", json_number(static_cast<long long>(operation.batch)));
    object.add("converged", json_bool(series.converged));
    object.add("oversubscribed", json_bool(team_.oversubscribed()));
    object.add("validated", json_bool(all_validated));
    written = std::fprintf(out_, "%s\n", object.str().c_str()) > 0 && std::fflush(out_) == 0;
    if (!written) std::fprintf(stderr, "earlybird kernel: cannot write samples: %s\n", std::strerror(errno));
  }
  if (!team_.all(written)) std::exit(1);
}

}  // namespace earlybird
