// Asks the dynamic linker which library provides MPI_Psend_init in this process.
#include "harness/mpi/partitioned.hpp"

#include <dlfcn.h>

#include <cstring>

#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

bool uses_libearlybird() {
  Dl_info info;
  void *const address = dlsym(RTLD_DEFAULT, "MPI_Psend_init");
  if (address == nullptr || dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  const char *const slash = std::strrchr(info.dli_fname, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : info.dli_fname, "libearlybird", 12) == 0;
}

}  // namespace

void require_partitioned(bool from_libearlybird, const std::string &what) {
  if (from_libearlybird == uses_libearlybird()) {
    if (from_libearlybird || dlsym(RTLD_DEFAULT, "MPI_Psend_init") != nullptr) return;
    refuse("this MPI has no partitioned communication, which " + what + " needs; give another --mpi");
  }
  if (from_libearlybird) refuse(what + " needs libearlybird, which is not loaded; preload it in the ranks");
  refuse(what + " needs the partitioned communication of the MPI, but libearlybird is loaded; do not preload it");
}

}  // namespace earlybird
