// How long one computation takes on each core of a node: shows cores that other work uses, and cores that are slow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/machine/cores.hpp"

namespace earlybird {

class CoreSpeed {
 public:
  explicit CoreSpeed(std::vector<Cpu> cores);

  // How many steps the calling thread computes in `time_s`.
  static std::int64_t steps_in(double time_s);

  // `steps` on every core at once, by a thread bound to it.
  void measure(std::int64_t steps);

  // {"cpus": [...], "compute_s": [...], "compute_cpu_s": [...]}: for each core the shortest elapsed time and the CPU time
  // of the same computation. The CPU time is shorter if other processes had the core meanwhile; that even the shortest is
  // long shows that they have it all the time.
  std::string json() const;

 private:
  struct Times {
    double elapsed_s, cpu_s;
  };

  std::vector<Cpu> cores_;
  std::vector<std::vector<Times>> times_;  // by core
};

}  // namespace earlybird
