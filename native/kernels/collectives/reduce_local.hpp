// What it costs to add two buffers: MPI_Reduce_local, on all ranks at a time as in a reduction.
#pragma once

#include "harness/kernel_main.hpp"

namespace earlybird {

// Takes and writes the sample of one point; collective.
void measure_reduce_local(const Task &task, const Point &point);

}  // namespace earlybird
