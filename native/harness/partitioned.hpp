// Partitioned communication for kernels: its prototypes, and whose it is in this process.
#pragma once

#include "include/earlybird.h"

// Weak, so that kernels link with an MPI that lacks these calls; libearlybird may still bring them.
#pragma weak MPI_Psend_init
#pragma weak MPI_Precv_init
#pragma weak MPI_Pready
#pragma weak MPI_Parrived

#include <string>

namespace earlybird {

// Whether libearlybird answers partitioned calls in this process.
bool earlybird_answers();

// Ends the program with a sentence about `what` unless partitioned calls are libearlybird's or, otherwise, the MPI's own.
void need_partitioned(bool of_earlybird, const std::string &what);

}  // namespace earlybird
