// The main program of every kernel: read the request, start MPI, measure each point.
#pragma once

#include <functional>

#include "harness/sampling/sampler.hpp"
#include "harness/team/crew.hpp"

namespace earlybird {

// The input of a kernel at one point.
struct Task {
  Team &team;
  Crew &crew;
  Sampler &sampler;
  const Request &request;
  const Point &point;
};

// `accepts` ends the program if the kernel cannot use this number of ranks; `measure` takes and writes the sample of one
// point. MPI is initialized with the thread level that `thread_level` returns; without it with MPI_THREAD_MULTIPLE if there are
// several threads, else with MPI_THREAD_SINGLE: the locks of MPI_THREAD_MULTIPLE slow down every call. `end` frees what the
// kernel keeps between points, before MPI_Finalize. `thread_level` and `end` may be empty.
int kernel_main(int argc, char **argv, const std::function<void(const Team &)> &accepts,
                const std::function<void(const Task &)> &measure, const std::function<int(const Request &)> &thread_level = {},
                const std::function<void()> &end = {});

}  // namespace earlybird
