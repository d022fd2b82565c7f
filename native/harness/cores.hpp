// On which host a rank is, which CPUs a thread may use, on which core and socket each of them is, and how a thread is
// bound to some.
#pragma once

#include <string>
#include <vector>

namespace earlybird {

struct Cpu {
  int number;   // as the kernel counts them
  int socket;   // physical package
  int core;     // within its socket; hardware threads of one core share it
};

std::string host_name();

// The CPUs that the calling thread may use now, ascending.
std::vector<Cpu> allowed_cpus();

// Allows the calling thread these CPUs alone; where the kernel refuses, what it may use stays as it was.
void bind_to(const std::vector<Cpu> &cpus);

}  // namespace earlybird
