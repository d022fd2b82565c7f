// The collective operations and their methods, by name.
#pragma once

#include <memory>
#include <string>

#include "kernels/collectives/algorithms/algorithm.hpp"
#include "kernels/collectives/algorithms/method_name.hpp"
#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

// Whether `operation` has a root. Ends the program with a message if the operation is unknown.
bool has_root(const std::string &operation);

// Whether `operation` is a reduction, of doubles or bytes.
bool is_reduction(const std::string &operation);

// Whether `operation` has blocks of different sizes, so that its points have a skew.
bool has_counts(const std::string &operation);

// Whether `operation` communicates with neighbours only, so that its points have a topology.
bool has_topology(const std::string &operation);

std::unique_ptr<Collective> make_collective(const std::string &operation, const Shape &shape);

// The method `name` for `collective`, which is `operation`, on `comm`: one of our algorithms, the MPI's persistent call, or
// the MPI's call. Ends the program with a message if there is no such algorithm of ours, or no such call of the MPI.
std::unique_ptr<Algorithm> make_algorithm(const MethodName &name, const std::string &operation, Collective &collective,
                                          MPI_Comm comm);

}  // namespace earlybird
