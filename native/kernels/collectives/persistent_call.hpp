// The MPI's persistent collective: initialised once, then started and completed in each call.
#pragma once

#include <mpi.h>

#include "kernels/collectives/algorithms/algorithm.hpp"
#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

class PersistentCall : public Algorithm {
 public:
  // Constructor and destructor are collective. Control variables that select the algorithm must be set before.
  PersistentCall(Collective &collective, MPI_Comm comm) { collective.init(comm, &request_); }
  ~PersistentCall() override { MPI_Request_free(&request_); }

  void run() override {
    MPI_Start(&request_);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
  }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace earlybird
