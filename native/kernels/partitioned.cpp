// Partitioned: when each partition of a buffer is ready on rank 0 and when it has arrived on rank 1, after a computation
// with noise on hot or cold caches (Temucin et al. 2022). The time of an iteration is that during which at least one
// partition is in flight: from its MPI_Pready, the call included, until rank 1 has it. The send methods are measured
// interleaved; all other metrics follow from the moments in the samples.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/machine/caches.hpp"
#include "harness/machine/clock.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/sampling/stop_rule.hpp"
#include "harness/text/json.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/computing/computing.hpp"
#include "kernels/methods/registry.hpp"

using namespace earlybird;

namespace {

// The caches of this rank's CPUs, if the point requests cold ones: emptied outside of the timed region.
class Caches {
 public:
  explicit Caches(const Task &task) {
    const std::string cache = task.point.text("cache");
    if (cache != "hot" && cache != "cold") refuse("the request gives cache=" + cache + "; give hot or cold");
    if (cache == "hot") return;
    flusher_ = &CacheFlusher::of(cpus_of(task.crew));
  }

  void prepare() {
    if (!flusher_) return;
    hot_s_.push_back(flusher_->probe_hot_s());
    flusher_->flush();
    cold_s_.push_back(flusher_->probe_cold_s());
  }

  bool are_cold() const { return flusher_ != nullptr; }

  // What the sample records about cold caches; the times of loads are those of both ranks.
  std::vector<std::pair<std::string, std::string>> members(Team &team) const {
    if (!flusher_) return {};
    return {{"line_hot_s", json_array(team.gather(std::vector<double>{median(hot_s_)}))},
            {"line_cold_s", json_array(team.gather(std::vector<double>{median(cold_s_)}))},
            {"flushed_bytes", std::to_string(flusher_->bytes())}};
  }

 private:
  // Every CPU that a thread of the crew may use, once.
  static std::vector<Cpu> cpus_of(const Crew &crew) {
    std::vector<Cpu> all;
    for (const std::vector<Cpu> &of_thread : crew.cpus()) {
      for (const Cpu &cpu : of_thread) {
        const auto same = [&](const Cpu &other) { return other.number == cpu.number; };
        if (std::none_of(all.begin(), all.end(), same)) all.push_back(cpu);
      }
    }
    return all;
  }

  CacheFlusher *flusher_ = nullptr;
  std::vector<double> hot_s_, cold_s_;
};

// The moments of one rank and iteration. Rank 0: MPI_Pready of each partition is called, and has returned; the threads
// join. Rank 1: each partition has arrived (the second part is empty); the receive is complete.
class Moments {
 public:
  explicit Moments(int num_partitions) : num_(static_cast<std::size_t>(num_partitions)), values_(2 * num_ + 1) {}

  double &first(int partition) { return values_[static_cast<std::size_t>(partition)]; }
  double &second(int partition) { return values_[num_ + static_cast<std::size_t>(partition)]; }
  double &last() { return values_.back(); }
  void set_first(double moment_s) { std::fill_n(values_.begin(), num_, moment_s); }
  void set_second(double moment_s) { std::fill_n(values_.begin() + static_cast<std::ptrdiff_t>(num_), num_, moment_s); }
  const std::vector<double> &values() const { return values_; }

 private:
  std::size_t num_;
  std::vector<double> values_;
};

// For how long at least one partition is in flight, from the moments of both ranks. Intervals may overlap and contain each
// other; an arrival that is seen before the call because of the error of the clocks counts as no time.
double in_flight_s(const std::vector<double> &moments_s, int num_partitions) {
  const auto num = static_cast<std::size_t>(num_partitions), of_rank = moments_s.size() / 2;
  std::vector<std::pair<double, double>> intervals;
  for (std::size_t k = 0; k < num; ++k) intervals.emplace_back(moments_s[k], moments_s[of_rank + k]);
  std::sort(intervals.begin(), intervals.end());
  double length_s = 0, covered_s = intervals.front().first;
  for (const auto &[begin_s, end_s] : intervals) {
    length_s += std::max(0.0, end_s - std::max(begin_s, covered_s));
    covered_s = std::max(covered_s, end_s);
  }
  return length_s;
}

// One method: rank 0 computes on its threads and marks partitions ready, rank 1 looks for the arrival of each.
class Exchange {
 public:
  Exchange(Transfer &transfer, std::unique_ptr<Method> method, Crew &crew, Computing &computing, Caches &caches, bool waits_for_all)
      : transfer_(transfer),
        method_(std::move(method)),
        crew_(crew),
        computing_(computing),
        caches_(caches),
        waits_for_all_(waits_for_all),
        moments_(transfer.num_partitions),
        arrived_(static_cast<std::size_t>(transfer.num_partitions)),
        computing_threads_(transfer.threads_share() ? static_cast<std::size_t>(transfer.num_partitions) : 0),
        share_([this](int thread) { compute(thread); }) {}

  void prepare(int iteration, int round) {
    method_->prepare();
    if (transfer_.sends()) fill(transfer_.buffer.data(), transfer_.size_bytes, content_key(0, 0, iteration));
    computing_.draw(round, 1);
    draws_s_.insert(draws_s_.end(), computing_.times_s().begin(), computing_.times_s().end());
    for (std::size_t k = 0; k < computing_threads_.size(); ++k) {
      const int partition = static_cast<int>(k);
      computing_threads_[k] = transfer_.sharing_of(partition + 1) - transfer_.sharing_of(partition);
    }
    caches_.prepare();
  }

  void run() { transfer_.sends() ? send() : receive(); }

  bool delivered(int iteration) const {
    return transfer_.sends() || holds(transfer_.buffer.data(), transfer_.size_bytes, content_key(0, 0, iteration));
  }

  const std::vector<double> &moments_s() const { return moments_.values(); }

  // The computation times of all iterations, by iteration and thread.
  const std::vector<double> &draws_s() const { return draws_s_; }

 private:
  void send() {
    method_->start();
    crew_.run(share_, crew_.between_jobs_of_ranks());
    moments_.last() = stamp_s();
    if (waits_for_all_) moments_.set_first(stamp_s());
    method_->all_ready();
    if (waits_for_all_) moments_.set_second(stamp_s());
    method_->wait();
  }

  void compute(int thread) {
    if (transfer_.threads_share()) {
      compute_together(thread);
      return;
    }
    const int first = transfer_.first_of(thread), count = transfer_.partitions_of(thread);
    for (int k = 0; k < count; ++k) {
      computing_.finish(thread, now_s(), 1.0 / count);
      mark_ready(first + k);
    }
  }

  // The last of the threads that share a partition marks it as ready.
  void compute_together(int thread) {
    computing_.finish(thread, now_s(), 1);
    const int partition = transfer_.shared_by(thread);
    if (computing_threads_[static_cast<std::size_t>(partition)].fetch_sub(1, std::memory_order_acq_rel) == 1) mark_ready(partition);
  }

  void mark_ready(int partition) {
    if (waits_for_all_) return;
    moments_.first(partition) = stamp_s();
    method_->ready(partition);
    moments_.second(partition) = stamp_s();
  }

  // The only partition has arrived when the receive is complete; so have all that arrive together.
  void receive() {
    method_->start();
    const bool looks = !waits_for_all_ && transfer_.num_partitions > 1;
    std::fill(arrived_.begin(), arrived_.end(), false);
    for (int missing = looks ? transfer_.num_partitions : 0; missing > 0;) {
      for (int k = 0; k < transfer_.num_partitions; ++k) {
        const auto number = static_cast<std::size_t>(k);
        if (arrived_[number] || !method_->arrived(k)) continue;
        moments_.first(k) = stamp_s();
        arrived_[number] = true;
        --missing;
      }
      transfer_.team.pause();
    }
    method_->wait();
    moments_.last() = stamp_s();
    if (!looks) moments_.set_first(moments_.last());
    moments_.set_second(moments_.last());
  }

  Transfer &transfer_;
  const std::unique_ptr<Method> method_;
  Crew &crew_;
  Computing &computing_;
  Caches &caches_;
  const bool waits_for_all_;
  Moments moments_;
  std::vector<bool> arrived_;
  std::vector<std::atomic<int>> computing_threads_;  // of each partition, if threads share them
  std::vector<double> draws_s_;
  const std::function<void(int)> share_;
};

// Of the other methods, partitions arrive together, and some send at the end of each thread.
void require_method(const std::string &name) {
  for (const char *known : {"single", "many", "partitioned", "earlybird"})
    if (name == known) return;
  refuse("partitioned has no method " + name + "; give some of single, many, partitioned, earlybird");
}

void require_pair(const Team &team) {
  if (team.size() != 2) refuse("partitioned needs exactly 2 ranks");
}

Transfer make_transfer(const Task &task, Buffer &buffer) {
  const int num_partitions = task.point.integer("partitions", 1, 1 << 20);
  const long long size_bytes = task.point.integer("size_bytes");
  if (size_bytes < num_partitions || size_bytes % num_partitions != 0)
    refuse("the request gives size_bytes=" + task.point.text("size_bytes") + " partitions=" + task.point.text("partitions") +
           "; give a size that is a multiple of the partitions");
  return {task.team, buffer, static_cast<std::size_t>(size_bytes), num_partitions, task.crew.size()};
}

// Of each row of `width` values, number `which`.
std::string json_column(const std::vector<double> &values, std::size_t width, std::size_t which) {
  std::vector<double> column;
  for (std::size_t k = which; k < values.size(); k += width) column.push_back(values[k]);
  return json_array(column);
}

// What the metrics are computed from; see docs/files.
void add_moments(Operation &operation, const Series &series, const Transfer &transfer, const std::vector<double> &draws_s) {
  const auto num = static_cast<std::size_t>(transfer.num_partitions), of_rank = 2 * num + 1, all = 2 * of_rank;
  const std::vector<double> &moments_s = series.moments_s;
  auto &members = operation.extra_members;
  members.emplace_back("ready_s", json_rows(moments_s, all, 0, num));
  members.emplace_back("returned_s", json_rows(moments_s, all, num, num));
  members.emplace_back("joined_s", json_column(moments_s, all, 2 * num));
  members.emplace_back("arrived_s", json_rows(moments_s, all, of_rank, num));
  members.emplace_back("completed_s", json_column(moments_s, all, of_rank + 2 * num));
  const auto threads = static_cast<std::size_t>(transfer.num_threads);
  members.emplace_back("compute_s", json_rows(draws_s, threads));
}

void measure(const Task &task) {
  Buffer buffer(static_cast<std::size_t>(task.point.integer("size_bytes")));
  Transfer transfer = make_transfer(task, buffer);
  Computing computing(task.team, task.crew, read_noise(task.point, task.request.seed));
  Caches caches(task);

  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::vector<Operation> operations;
  for (const std::string &name : task.request.methods) {
    require_method(name);
    const Kind kind = find_method(name, "partitioned");
    exchanges.push_back(std::make_unique<Exchange>(transfer, kind.make(transfer), task.crew, computing, caches, name == "single"));
    Exchange &exchange = *exchanges.back();
    Operation operation;
    operation.method = name;
    operation.settling = kind.settling;
    operation.cold = caches.are_cold();
    operation.prepare = [&exchange, &task](int iteration) { exchange.prepare(iteration, task.sampler.round()); };
    operation.run = [&exchange] { exchange.run(); };
    operation.check = [&exchange](int iteration) { return exchange.delivered(iteration); };
    operation.moments_s = [&exchange]() -> const std::vector<double> & { return exchange.moments_s(); };
    operation.time_of_moments = [&transfer](const std::vector<double> &moments_s) {
      return in_flight_s(moments_s, transfer.num_partitions);
    };
    operation.reduction = Reduction::delivery;
    operations.push_back(operation);
  }
  if (operations.empty()) refuse("partitioned needs methods, such as single, partitioned");

  const std::vector<Series> all = task.sampler.take(operations);
  task.crew.run([](int) {});  // ends the spinning of idle threads
  auto members = caches.members(task.team);
  members.emplace_back("work_per_s", json_array(computing.steps_per_s()));
  for (std::size_t k = 0; k < all.size(); ++k) {
    operations[k].extra_members = members;
    operations[k].extra_members.emplace_back("seed", std::to_string(task.request.seed));
    add_moments(operations[k], all[k], transfer, exchanges[k]->draws_s());
    task.sampler.write("partitioned", "in_flight", task.point, all[k], operations[k], all[k].delivered);
  }
  // Both ranks free communicators in the order of creation.
  for (std::unique_ptr<Exchange> &exchange : exchanges) exchange.reset();
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, require_pair, measure); }
