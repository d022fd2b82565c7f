// The halo exchange of blocks of cells, which the kernels halo3d and comb measure.
#pragma once

#include <string>

#include "harness/kernel_main.hpp"

namespace earlybird {

void measure_halo(const Task &task, const std::string &kernel);

}  // namespace earlybird
