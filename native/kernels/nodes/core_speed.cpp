// One thread for each core, new in every measurement: binding those of MPI would leave them where they were not meant to be.
#include "kernels/nodes/core_speed.hpp"

#include <time.h>

#include <algorithm>
#include <thread>

#include "harness/machine/clock.hpp"
#include "harness/machine/work.hpp"
#include "harness/text/json.hpp"

namespace earlybird {

namespace {

double thread_cpu_s() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

CoreSpeed::CoreSpeed(std::vector<Cpu> cores) : cores_(std::move(cores)), times_(cores_.size()) {}

std::int64_t CoreSpeed::steps_in(double time_s) {
  Work work;
  work.calibrate();
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(work.steps_per_s() * time_s));
}

void CoreSpeed::measure(std::int64_t steps) {
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < cores_.size(); ++k) {
    threads.emplace_back([this, k, steps] {
      bind_to({cores_[k]});
      Work work;
      const double begin_s = now_s(), cpu_begin_s = thread_cpu_s();
      work.compute(steps);
      times_[k].push_back({now_s() - begin_s, thread_cpu_s() - cpu_begin_s});
    });
  }
  for (std::thread &thread : threads) thread.join();
}

std::string CoreSpeed::json() const {
  std::vector<int> cpus;
  std::vector<double> elapsed_s, cpu_s;
  for (std::size_t k = 0; k < cores_.size(); ++k) {
    const auto is_shorter = [](const Times &a, const Times &b) { return a.elapsed_s < b.elapsed_s; };
    const auto kept = std::min_element(times_[k].begin(), times_[k].end(), is_shorter);
    if (kept == times_[k].end()) continue;
    cpus.push_back(cores_[k].number);
    elapsed_s.push_back(kept->elapsed_s);
    cpu_s.push_back(kept->cpu_s);
  }
  JsonObject object;
  object.add("cpus", json_array(cpus)).add("compute_s", json_array(elapsed_s)).add("compute_cpu_s", json_array(cpu_s));
  return object.str();
}

}  // namespace earlybird
