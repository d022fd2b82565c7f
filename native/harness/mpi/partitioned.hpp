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

// libearlybird has nearly always found the segments of a request by then.
constexpr int starts_until_settled = EARLYBIRD_STARTS_UNTIL_SETTLED;

// Ends the program with a message about `what` unless partitioned communication is provided by libearlybird
// (`from_libearlybird`) or by the MPI itself (otherwise).
void require_partitioned(bool from_libearlybird, const std::string &what);

}  // namespace earlybird
