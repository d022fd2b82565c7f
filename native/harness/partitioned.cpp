// Asks the dynamic linker whose MPI_Psend_init this process calls.
#include "harness/partitioned.hpp"

#include <dlfcn.h>

#include <cstring>

#include "harness/command_line.hpp"

namespace earlybird {

bool earlybird_answers() {
  Dl_info info;
  void *const found = dlsym(RTLD_DEFAULT, "MPI_Psend_init");
  if (found == nullptr || dladdr(found, &info) == 0 || info.dli_fname == nullptr) return false;
  const char *const slash = std::strrchr(info.dli_fname, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : info.dli_fname, "libearlybird", 12) == 0;
}

void need_partitioned(bool of_earlybird, const std::string &what) {
  if (of_earlybird == earlybird_answers()) {
    if (of_earlybird || dlsym(RTLD_DEFAULT, "MPI_Psend_init") != nullptr) return;
    refuse("this MPI has no partitioned communication, which " + what + " measures; give another --mpi");
  }
  if (of_earlybird) refuse(what + " is libearlybird's, which is not loaded; launch the ranks with it preloaded");
  refuse(what + " is the MPI's own and libearlybird is loaded; launch the ranks without it");
}

}  // namespace earlybird
