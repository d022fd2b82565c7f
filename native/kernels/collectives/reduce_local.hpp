// The cost of adding two buffers with MPI_Reduce_local, on all ranks at the same time as in a reduction.
#pragma once

#include "harness/kernel_main.hpp"

namespace earlybird {

// Takes and writes the sample of one point; collective.
void measure_reduce_local(const Task &task, const Point &point);

}  // namespace earlybird
