// A duplicate of a communicator. An MPI with several contexts assigns them to different communicators.
#pragma once

#include <mpi.h>

namespace earlybird {

class Duplicate {
 public:
  explicit Duplicate(MPI_Comm comm) { MPI_Comm_dup(comm, &comm_); }
  ~Duplicate() { MPI_Comm_free(&comm_); }
  Duplicate(const Duplicate &) = delete;
  Duplicate &operator=(const Duplicate &) = delete;

  MPI_Comm comm() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace earlybird
