// Uses sched_getaffinity and sched_setaffinity, and reads the topology from /sys.
#include "harness/machine/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace earlybird {

namespace {

// cpu_set_t has a fixed size of 1024.
constexpr int max_cpus = 8192;

class CpuSet {
 public:
  CpuSet() : set_(CPU_ALLOC(max_cpus)) { CPU_ZERO_S(size_bytes(), set_); }
  ~CpuSet() { CPU_FREE(set_); }
  CpuSet(const CpuSet &) = delete;
  CpuSet &operator=(const CpuSet &) = delete;

  cpu_set_t *get() { return set_; }
  static std::size_t size_bytes() { return CPU_ALLOC_SIZE(max_cpus); }

 private:
  cpu_set_t *set_;
};

int topology_number(int cpu, const char *name) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name);
  int number = 0;
  file >> number;
  return number;
}

}  // namespace

std::string host_name() {
  const char *variable = std::getenv("EARLYBIRD_NODE_NAME_IN");
  const char *stated = variable == nullptr ? nullptr : std::getenv(variable);
  if (stated != nullptr && *stated != '\0') return stated;
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::vector<Cpu> allowed_cpus() {
  std::vector<Cpu> cpus;
  CpuSet set;
  if (sched_getaffinity(0, CpuSet::size_bytes(), set.get()) != 0) return cpus;
  for (int cpu = 0; cpu < max_cpus; ++cpu) {
    if (CPU_ISSET_S(cpu, CpuSet::size_bytes(), set.get()))
      cpus.push_back({cpu, topology_number(cpu, "physical_package_id"), topology_number(cpu, "core_id")});
  }
  return cpus;
}

void bind_to(const std::vector<Cpu> &cpus) {
  CpuSet set;
  for (const Cpu &cpu : cpus) CPU_SET_S(cpu.number, CpuSet::size_bytes(), set.get());
  sched_setaffinity(0, CpuSet::size_bytes(), set.get());
}

}  // namespace earlybird
