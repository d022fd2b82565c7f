// The main program of every kernel: read the arguments, start MPI, read the plan, measure point after point.
#pragma once

#include <functional>

#include "harness/crew.hpp"
#include "harness/sampler.hpp"

namespace earlybird {

// What a kernel is asked for at one point.
struct Task {
  Team &team;
  Crew &crew;
  Sampler &sampler;
  const CommandLine &line;
  const Point &point;
};

// `accepts` refuses a number of ranks that the kernel cannot use; `measure` takes and writes one point's sample. MPI is
// started with MPI_THREAD_MULTIPLE where there are several threads or `from_threads`, which may be empty, says so. `end`,
// which may be empty too, gives up what was kept from point to point, while MPI still answers.
int kernel_main(int argc, char **argv, const std::function<void(const Team &)> &accepts,
                const std::function<void(const Task &)> &measure,
                const std::function<bool(const CommandLine &)> &from_threads = {},
                const std::function<void()> &end = {});

}  // namespace earlybird
