// Threads sleep during a computation and spin on the clock at its end.
#include "kernels/computation.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "harness/machine/clock.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

// Linux may wake a sleeping thread late (timer slack is 50 us); threads spin for this last part of a computation.
constexpr double spin_s = 150e-6;

// With more threads than cores, threads sleep to the end: a spinning thread would block the receiver's core.
void wait_until(double due_s, bool oversubscribed) {
  if (oversubscribed) {
    sleep_until(due_s);
    return;
  }
  if (due_s - now_s() > spin_s) sleep_until(due_s - spin_s);
  while (now_s() < due_s) continue;
}

// The last partition is ready D = gamma times its size after the start, the others immediately.
class LastLate : public Computation {
 public:
  LastLate(const Transfer &transfer, double delay_s) : Computation(true), transfer_(transfer), delay_s_(delay_s) {}

  double requested_s() const override { return delay_s_; }
  void prepare(int) override {}
  void begin() override {
    begin_s_ = now_s();
    late_s_ = 0;
  }
  void compute(int, int) override {
    const double due_s = begin_s_ + delay_s_;
    // Sending took longer than the concurrent computation: the time beyond the delay is the cost of sending.
    if (now_s() >= due_s) {
      late_s_ = delay_s_;
      return;
    }
    wait_until(due_s, transfer_.team.oversubscribed());
    late_s_ = now_s() - begin_s_;
  }
  double slowest_s() const override { return late_s_; }

 private:
  const Transfer &transfer_;
  const double delay_s_;
  double begin_s_ = 0, late_s_ = 0;
};

// Computing a partition takes bytes * mu * Normal(1, (epsilon + delta)/2), equation (7); a thread computes its partitions
// in order.
class Noisy : public Computation {
 public:
  Noisy(const Transfer &transfer, double mu_s_per_byte, double deviation)
      : Computation(false),
        transfer_(transfer),
        mean_s_(mu_s_per_byte * static_cast<double>(transfer.partition_bytes())),
        deviation_(deviation),
        times_s_(static_cast<std::size_t>(transfer.num_partitions)),
        threads_(static_cast<std::size_t>(transfer.num_threads)) {}

  double requested_s() const override { return mean_s_ * transfer_.partitions_of(0); }

  // One generator per thread and round, so that a thread's random numbers do not depend on the number of threads.
  void prepare(int round) override {
    if (!transfer_.sends()) return;
    std::normal_distribution<double> normal(1, deviation_);
    for (int thread = 0; thread < transfer_.num_threads; ++thread) {
      std::seed_seq seeds{thread, round};
      std::mt19937_64 generator(seeds);
      normal.reset();
      for (int k = transfer_.first_of(thread); k < transfer_.first_of(thread + 1); ++k)
        times_s_[static_cast<std::size_t>(k)] = mean_s_ * std::max(deviation_ > 0 ? normal(generator) : 1.0, 0.0);
    }
  }
  void begin() override {
    for (Thread &thread : threads_) thread.computed_s = 0;
  }
  void compute(int thread, int partition) override {
    const double time_s = times_s_[static_cast<std::size_t>(partition)];
    if (time_s <= 0) return;
    const double begin_s = now_s();
    wait_until(begin_s + time_s, transfer_.team.oversubscribed());
    threads_[static_cast<std::size_t>(thread)].computed_s += now_s() - begin_s;
  }
  double slowest_s() const override {
    double slowest_s = 0;
    for (const Thread &thread : threads_) slowest_s = std::max(slowest_s, thread.computed_s);
    return slowest_s;
  }

 private:
  struct alignas(64) Thread {  // one cache line each, to avoid false sharing
    double computed_s = 0;
  };

  const Transfer &transfer_;
  const double mean_s_, deviation_;
  std::vector<double> times_s_;
  std::vector<Thread> threads_;
};

}  // namespace

std::unique_ptr<Computation> make_computation(const Point &point, const Transfer &transfer) {
  const auto partition_bytes = static_cast<double>(transfer.partition_bytes());
  if (!point.has("compute_s_per_byte"))
    return std::make_unique<LastLate>(transfer, point.not_negative("gamma_s_per_byte") * partition_bytes);
  if (point.has("gamma_s_per_byte"))
    refuse("the request gives gamma_s_per_byte and compute_s_per_byte; give one of them: a delayed last partition, or noise");
  const double mu_s_per_byte = point.not_negative("compute_s_per_byte");
  const double deviation = (point.not_negative("epsilon") + point.not_negative("delta")) / 2;
  return std::make_unique<Noisy>(transfer, mu_s_per_byte, deviation);
}

}  // namespace earlybird
