// The threads of a rank. They are started once; between jobs they sleep, or stand by where the next job is timed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/cores.hpp"

namespace earlybird {

class Crew {
 public:
  // What threads do after a job. One that stands by begins the next within the time of a cache miss and keeps its core
  // busy meanwhile; one that rests is woken by the kernel, which takes longer than most messages.
  enum class Then { rest, stand_by };

  // The calling thread is number 0; `size` - 1 more are started. Where the caller may use exactly `size` cores, each
  // thread is bound to one of them, so that none is moved about; else each may use all of them.
  explicit Crew(int size);
  ~Crew();
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;

  int size() const { return static_cast<int>(cpus_.size()); }

  // Thread after thread the CPUs that it may use, as the kernel gave them to it.
  const std::vector<std::vector<Cpu>> &cpus() const { return cpus_; }

  // Whether threads that wait give up their core, for when there are more of them than cores.
  void set_yielding(bool value) { yielding_ = value; }

  // Calls job(number) on every thread and returns when all have done it. A crew of one calls it and no more.
  void run(const std::function<void(int number)> &job, Then then = Then::rest);

 private:
  void work(int number);
  void await_job(long long last, bool awake);
  void pause() const;

  std::vector<std::vector<Cpu>> cpus_;
  std::vector<std::thread> others_;
  std::atomic<bool> yielding_{true};

  // The job of a number stands in job_ and then_ from when issued_ reaches that number until all are done with it.
  const std::function<void(int)> *job_ = nullptr;
  Then then_ = Then::rest;
  // Apart, so that threads that are done do not disturb those that look for a job.
  alignas(64) std::atomic<long long> issued_{0};
  alignas(64) std::atomic<int> busy_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace earlybird
