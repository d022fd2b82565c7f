// Barrier: transfers no data.
#pragma once

#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

class Barrier : public Collective {
 public:
  explicit Barrier(const Shape &shape) : Collective(shape, 0, 0) {}

  void prepare(int) override {}
  void call(MPI_Comm comm) override { MPI_Barrier(comm); }
  void init(MPI_Comm comm, MPI_Request *request) override { MPI_Barrier_init(comm, MPI_INFO_NULL, request); }

  // There is no data to check: the kernel delays one rank and checks whether the others waited.
  bool received(int) const override { return true; }
};

}  // namespace earlybird
