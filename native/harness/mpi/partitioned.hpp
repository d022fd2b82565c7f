// Partitioned communication for kernels: the prototypes, and which library provides it in this process.
#pragma once

#include "include/earlybird.h"

// Weak, so that kernels link with an MPI without these functions; libearlybird may provide them.
#pragma weak MPI_Psend_init
#pragma weak MPI_Precv_init
#pragma weak MPI_Pready
#pragma weak MPI_Parrived

#include <string>

namespace earlybird {

// libearlybird has tried segmentations twice by then: requests of large transfers in starts 2 to 37 and 48 to 83, those of small
// ones from start 16 on, or 32 if an earlier request provided the initial one, and about ten starts later again.
constexpr int starts_until_settled = 100;

// Ends the program with a message about `what` unless partitioned communication is provided by libearlybird
// (`from_libearlybird`) or by the MPI itself (otherwise).
void require_partitioned(bool from_libearlybird, const std::string &what);

}  // namespace earlybird
