// The host of a rank, the CPUs that a thread may use with their cores and sockets, and binding of threads to CPUs.
#pragma once

#include <string>
#include <vector>

namespace earlybird {

struct Cpu {
  int number;   // number used by the operating system
  int socket;   // physical package
  int core;     // within its socket; hardware threads of one core share it
};

// The name of this node in the variable that EARLYBIRD_NODE_NAME_IN names, if a launcher has set that, else the one that
// the node has itself: a batch system may know the node by another name, and takes no other.
std::string host_name();

// The CPUs that the calling thread may use now, in ascending order.
std::vector<Cpu> allowed_cpus();

// Binds the calling thread to these CPUs; if the operating system refuses, the binding does not change.
void bind_to(const std::vector<Cpu> &cpus);

}  // namespace earlybird
