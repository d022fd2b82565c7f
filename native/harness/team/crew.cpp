// Jobs are counted; a thread waits until the count exceeds its last job.
#include "harness/team/crew.hpp"

#include <sched.h>

#include <map>
#include <utility>

namespace earlybird {

namespace {

// The CPUs of each core.
std::vector<std::vector<Cpu>> by_core(const std::vector<Cpu> &cpus) {
  std::map<std::pair<int, int>, std::vector<Cpu>> cores;
  for (const Cpu &cpu : cpus) cores[{cpu.socket, cpu.core}].push_back(cpu);
  std::vector<std::vector<Cpu>> result;
  for (const auto &entry : cores) result.push_back(entry.second);
  return result;
}

}  // namespace

Crew::Crew(int size) : cpus_(static_cast<std::size_t>(size)) {
  const std::vector<std::vector<Cpu>> cores = by_core(allowed_cpus());
  for (int number = 1; number < size; ++number) others_.emplace_back(&Crew::work, this, number);
  run([&](int number) {
    const auto k = static_cast<std::size_t>(number);
    if (size > 1 && cores.size() == cpus_.size()) bind_to(cores[k]);
    cpus_[k] = allowed_cpus();
  });
}

Crew::~Crew() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    job_ = nullptr;
    issued_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  for (std::thread &thread : others_) thread.join();
}

void Crew::run(const std::function<void(int)> &job, Then then) {
  if (others_.empty()) {
    job(0);
    return;
  }
  {
    // Under the lock, so that no thread goes to sleep between reading the count and waiting.
    const std::lock_guard<std::mutex> lock(mutex_);
    busy_.store(static_cast<int>(others_.size()), std::memory_order_relaxed);
    job_ = &job;
    const Then before = std::exchange(then_, then);
    issued_.fetch_add(1, std::memory_order_release);
    if (before == Then::rest) wake_.notify_all();
  }
  job(0);
  while (busy_.load(std::memory_order_acquire) > 0) pause();
}

void Crew::work(int number) {
  bool awake = false;
  for (long long last = 0;; ++last) {
    await_job(last, awake);
    if (job_ == nullptr) return;
    // Read before the job is reported as done: after that, the next job may replace it.
    awake = then_ == Then::stand_by;
    (*job_)(number);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

void Crew::await_job(long long last, bool awake) {
  if (awake) {
    while (issued_.load(std::memory_order_acquire) == last) pause();
    return;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  wake_.wait(lock, [&] { return issued_.load(std::memory_order_acquire) != last; });
}

void Crew::pause() const {
  if (yielding_.load(std::memory_order_relaxed)) sched_yield();
}

}  // namespace earlybird
