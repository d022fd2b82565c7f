// Barrier: nothing is brought over but that all are there.
#pragma once

#include "kernels/collectives/collective.hpp"

namespace earlybird {

class Barrier : public Collective {
 public:
  explicit Barrier(const Shape &shape) : Collective(shape, 0, 0) {}

  void prepare(int) override {}
  void call(MPI_Comm comm) override { MPI_Barrier(comm); }

  // No data tell whether all were there: the kernel lets a rank be late and looks whether the others waited.
  bool received(int) const override { return true; }
};

}  // namespace earlybird
