// One order of events for all kernels, so that they differ only in what they measure.
#include "harness/kernel_main.hpp"

#include <vector>

namespace earlybird {

int kernel_main(int argc, char **argv, const std::function<void(const Team &)> &accepts,
                const std::function<void(const Task &)> &measure) {
  int thread_level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &thread_level);
  const CommandLine line = read_command_line(argc, argv);
  const std::vector<Point> plan = read_plan(line.plan);
  {
    Team team(MPI_COMM_WORLD);
    accepts(team);
    Sampler sampler(team, line, thread_level);
    for (const Point &point : plan) measure({team, sampler, line, point});
  }
  MPI_Finalize();
  return 0;
}

}  // namespace earlybird
