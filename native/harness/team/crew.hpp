// The threads of a rank. They are started once; between jobs they sleep, or spin if the next job is timed.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/machine/cores.hpp"

namespace earlybird {

class Crew {
 public:
  // What threads do after a job. A thread that stands by spins: it starts the next job within the time of a cache miss and
  // keeps its core busy until then. A thread that rests sleeps; waking it takes longer than most messages.
  enum class Then { rest, stand_by };

  // The calling thread is number 0; `size` - 1 more are started. If the caller may use exactly `size` cores, each thread is
  // bound to one of them, so that threads do not migrate; otherwise each thread may use all of them.
  explicit Crew(int size);
  ~Crew();
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;

  int size() const { return static_cast<int>(cpus_.size()); }

  // For each thread, the CPUs that it may use according to the operating system.
  const std::vector<std::vector<Cpu>> &cpus() const { return cpus_; }

  // Whether waiting threads yield their core; needed if there are more threads than cores.
  void set_yielding(bool value) { yielding_ = value; }

  // What threads do between jobs during which other ranks compute or communicate: with more threads than cores, those that
  // stand by would keep the other ranks from their cores.
  Then between_jobs_of_ranks() const { return yielding_ ? Then::rest : Then::stand_by; }

  // Calls job(number) on every thread and returns when all calls have returned. With one thread, only calls the job.
  void run(const std::function<void(int number)> &job, Then then = Then::rest);

 private:
  void work(int number);
  void await_job(long long last, bool awake);
  void pause() const;

  std::vector<std::vector<Cpu>> cpus_;
  std::vector<std::thread> others_;
  std::atomic<bool> yielding_{true};

  // job_ and then_ hold the job with the number issued_ until all threads have finished it.
  const std::function<void(int)> *job_ = nullptr;
  Then then_ = Then::rest;
  // On separate cache lines, so that threads that finish do not disturb threads that wait for a job.
  alignas(64) std::atomic<long long> issued_{0};
  alignas(64) std::atomic<int> busy_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
};

}  // namespace earlybird
