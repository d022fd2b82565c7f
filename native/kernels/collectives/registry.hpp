// The collective operations and the methods to do them, by name.
#pragma once

#include <memory>
#include <string>

#include "kernels/collectives/algorithm.hpp"
#include "kernels/collectives/collective.hpp"
#include "kernels/collectives/method_name.hpp"

namespace earlybird {

// Whether `operation` has a root. Ends the program with a sentence when there is no such operation.
bool has_root(const std::string &operation);

// Whether ranks contribute what is added up, as doubles or bytes.
bool is_reduction(const std::string &operation);

std::unique_ptr<Collective> make_collective(const std::string &operation, const Shape &shape);

// The method `name` to do `collective`, which is `operation`, on `comm`: one of ours, or the MPI's call. Ends the program
// with a sentence when there is no such method of ours.
std::unique_ptr<Algorithm> make_algorithm(const MethodName &name, const std::string &operation, Collective &collective,
                                          MPI_Comm comm);

}  // namespace earlybird
