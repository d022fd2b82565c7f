// Clock and cores of a machine simulated by SimGrid; replaces real_clock.cpp, cores.cpp and shared_memory.cpp.
//
// Every core is a SimGrid host named NODE-socketS-coreC in the platform that src/earlybird/launch/simgrid.py writes; the
// processor name of a rank gives its location.
#include <mpi.h>
#include <simgrid/host.h>

#include <cstdio>
#include <string>

#include "harness/machine/clock.hpp"
#include "harness/machine/cores.hpp"
#include "harness/machine/shared_memory.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

struct Location {
  std::string node;
  Cpu cpu;
};

Location location() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  const std::string host(name, static_cast<std::size_t>(length));
  const std::size_t end_of_node = host.find("-socket");
  Location result;
  if (end_of_node == std::string::npos ||
      std::sscanf(host.c_str() + end_of_node, "-socket%d-core%d", &result.cpu.socket, &result.cpu.number) != 2)
    refuse("the simulated host " + host + " is not named NODE-socketS-coreC; start the ranks with --launcher simgrid");
  result.node = host.substr(0, end_of_node);
  result.cpu.core = result.cpu.number;
  return result;
}

}  // namespace

double now_s() { return MPI_Wtime(); }

bool clock_is_global() { return true; }

void sleep_until(double time_s) {
  const double left_s = time_s - now_s();
  if (left_s <= 0) return;
  // SMPI's sleep only supports whole nanoseconds.
  smpi_execute_flops(left_s * sg_host_get_speed(sg_host_self()));
}

std::string host_name() { return location().node; }

std::vector<Cpu> allowed_cpus() { return {location().cpu}; }

// A simulated rank stays on its core.
void bind_to(const std::vector<Cpu> &) {}

// Simulated ranks are threads of one process, which has none.
void note_shared_memory(const std::string &) {}

}  // namespace earlybird
