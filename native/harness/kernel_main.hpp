// The main program of every kernel: start MPI, read the arguments and the plan, measure point after point.
#pragma once

#include <functional>

#include "harness/sampler.hpp"

namespace earlybird {

// What a kernel is asked for at one point.
struct Task {
  Team &team;
  Sampler &sampler;
  const CommandLine &line;
  const Point &point;
};

// `accepts` refuses a number of ranks that the kernel cannot use; `measure` takes and writes one point's sample.
int kernel_main(int argc, char **argv, const std::function<void(const Team &)> &accepts,
                const std::function<void(const Task &)> &measure);

}  // namespace earlybird
