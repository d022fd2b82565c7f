// Test program: prints the time of a load on the second usable CPU before and after the caches of the first two are emptied.
#include <cstdio>

#include "harness/machine/caches.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

int main() {
  const std::vector<Cpu> cpus = allowed_cpus();
  if (cpus.size() < 2) refuse("caches_check needs two CPUs");
  bind_to({cpus[1]});
  CacheFlusher flusher({cpus[0], cpus[1]});
  const double hot_s = flusher.probe_hot_s();
  flusher.flush();
  std::printf("%.17g %.17g\n", hot_s, flusher.probe_cold_s());
}
