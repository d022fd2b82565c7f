// Asks the dynamic linker which library provides MPI_Psend_init in this process.
#include "harness/mpi/partitioned.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

bool is_libearlybird(const char *path) {
  const char *const slash = std::strrchr(path, '/'), *const name = slash != nullptr ? slash + 1 : path;
  return std::strcmp(name, "libearlybird.so") == 0 || std::strcmp(name, "libearlybird_abi.so") == 0;
}

// Not by the address of MPI_Psend_init: that is the recorder's where a launch is recorded.
bool uses_libearlybird() {
  return dl_iterate_phdr([](dl_phdr_info *object, std::size_t, void *) { return int{is_libearlybird(object->dlpi_name)}; },
                         nullptr) != 0;
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
