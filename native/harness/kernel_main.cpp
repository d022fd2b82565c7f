// The sequence of steps that all kernels share.
#include "harness/kernel_main.hpp"

#include <string>
#include <vector>

#include "harness/launch_record.hpp"
#include "harness/machine/shared_memory.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

// Levels are ordered (MPI 4.1 section 11.2.1).
int start_mpi(int *argc, char ***argv, const Request &request, int required) {
  const int threads = request.threads;
  int provided;
  MPI_Init_thread(argc, argv, required, &provided);
  note_shared_memory(request.out + ".shared");
  if (provided < required)
    refuse("--threads is " + std::to_string(threads) + " and this MPI provides thread level " + thread_level_name(provided) + "; " +
           thread_level_name(required) + " is required; give " + (threads > 1 ? "--threads 1 or " : "") + "another --mpi");
  return provided;
}

// Without the process manager that an MPI speaks, each rank is one of a world of its own.
void require_connected(const Team &team, int ranks) {
  if (ranks == 0 || team.size() == ranks) return;
  refuse("the launch has " + std::to_string(ranks) + " ranks, but this one is in a world of " + std::to_string(team.size()) +
         ": the ranks did not find each other, because what started them does not offer the process manager of this MPI; under "
         "srun give another plugin, such as --srun --mpi=pmix (srun --mpi=list), else the mpiexec of this MPI");
}

}  // namespace

int kernel_main(int argc, char **argv, const std::function<void(const Team &)> &accepts,
                const std::function<void(const Task &)> &measure, const std::function<int(const Request &)> &thread_level,
                const std::function<void()> &end) {
  const Request request = read_request(argc, argv);
  const int usual = request.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  const int provided = start_mpi(&argc, &argv, request, thread_level ? thread_level(request) : usual);
  {
    Team team(MPI_COMM_WORLD);
    require_connected(team, request.ranks);
    accepts(team);
    Crew crew(request.threads);
    const std::string record = record_launch(team, crew, provided);
    crew.set_yielding(team.oversubscribed());
    Sampler sampler(team, request, record);
    for (const Point &point : request.points) measure({team, crew, sampler, request, point});
    if (end) end();
  }
  MPI_Finalize();
  return 0;
}

}  // namespace earlybird
