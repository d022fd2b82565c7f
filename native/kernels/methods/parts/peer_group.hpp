// The group of the other rank, for epochs of active target synchronization.
#pragma once

#include "kernels/methods/parts/transfer.hpp"

namespace earlybird {

class PeerGroup {
 public:
  explicit PeerGroup(const Transfer &transfer) {
    MPI_Group both;
    MPI_Comm_group(transfer.team.comm(), &both);
    const int peer = transfer.peer();
    MPI_Group_incl(both, 1, &peer, &group_);
    MPI_Group_free(&both);
  }
  ~PeerGroup() { MPI_Group_free(&group_); }
  PeerGroup(const PeerGroup &) = delete;
  PeerGroup &operator=(const PeerGroup &) = delete;

  MPI_Group group() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

}  // namespace earlybird
