// What a node has and allows: cores, memory, shared memory, single copies between processes, its MPI and its network devices.
#pragma once

#include <string>
#include <vector>

#include "harness/machine/cores.hpp"

namespace earlybird {

// Whether a process may read the memory of another that is not its child, as MPI libraries do to copy a message once. Starts
// two processes: call it before MPI_Init, because some networks do not allow that afterwards.
bool can_copy_once();

// The CPUs of this node that the processes of this job may use, whatever this process is bound to: one for each core.
std::vector<Cpu> usable_cores();

// How many processes and threads of others run or wait for a core of this node: the mean of a tenth of a second, in which
// this process sleeps.
double load_of_others();

// TCP segments of this network namespace since its start. Zeros where the kernel does not count them.
struct Segments {
  double sent = 0, sent_again = 0;
};
Segments count_segments();

// Bytes that each network device of this node has sent and received since its start, as JSON: {"eth0": 1234}. Devices that
// bypass the kernel are counted where they count themselves (InfiniBand).
std::string device_bytes_json();

// Ticks of all CPUs, and those that the hypervisor gave to other guests.
struct Ticks {
  double all = 0, stolen = 0;
};
Ticks count_ticks();

// Further facts as members of a JSON object, keys as docs/files lists them. `copies_once` is the result of can_copy_once().
std::string facts_json(bool copies_once, const std::string &more);

}  // namespace earlybird
