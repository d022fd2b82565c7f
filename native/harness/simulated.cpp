// Clock and cores of a machine that SimGrid simulates: takes the place of real_clock.cpp and cores.cpp.
//
// Every core is a host of SimGrid's, called NODE-socketS-coreC by the platform that src/earlybird/launch/simgrid.py
// writes: a rank's processor name tells where it is.
#include <mpi.h>
#include <simgrid/host.h>

#include <cstdio>
#include <string>

#include "harness/clock.hpp"
#include "harness/command_line.hpp"
#include "harness/cores.hpp"

namespace earlybird {

namespace {

struct Place {
  std::string node;
  Cpu cpu;
};

Place place() {
  char name[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  MPI_Get_processor_name(name, &length);
  const std::string host(name, static_cast<std::size_t>(length));
  const std::size_t end_of_node = host.find("-socket");
  Place found;
  if (end_of_node == std::string::npos ||
      std::sscanf(host.c_str() + end_of_node, "-socket%d-core%d", &found.cpu.socket, &found.cpu.number) != 2)
    refuse("the simulated host " + host + " is not called NODE-socketS-coreC; start ranks with --launcher simgrid");
  found.node = host.substr(0, end_of_node);
  found.cpu.core = found.cpu.number;
  return found;
}

}  // namespace

double now_s() { return MPI_Wtime(); }

bool clock_is_global() { return true; }

void sleep_until(double time_s) {
  const double left_s = time_s - now_s();
  if (left_s <= 0) return;
  // Not SMPI's sleep, which knows whole nanoseconds alone.
  smpi_execute_flops(left_s * sg_host_get_speed(sg_host_self()));
}

std::string host_name() { return place().node; }

std::vector<Cpu> allowed_cpus() { return {place().cpu}; }

// A simulated rank stays on its core.
void bind_to(const std::vector<Cpu> &) {}

}  // namespace earlybird
