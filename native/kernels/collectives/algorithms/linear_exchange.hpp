// Our own exchange of blocks: a message from each source and to each destination, all in flight at the same time.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "harness/team/team.hpp"
#include "kernels/collectives/algorithms/algorithm.hpp"

namespace earlybird {

class LinearExchange : public Algorithm {
 public:
  struct Message {
    int peer;
    std::byte *data;
    int size_bytes;
  };

  // Empty messages are not sent. A message from a rank to itself is copied.
  LinearExchange(Team &team, MPI_Comm comm, const std::vector<Message> &sends, const std::vector<Message> &receives);
  void run() override;

 private:
  static constexpr int tag = 32;

  Team &team_;
  MPI_Comm comm_;
  std::vector<Message> sends_, receives_;
  Message own_send_{}, own_receive_{};
  std::vector<MPI_Request> requests_;
};

}  // namespace earlybird
