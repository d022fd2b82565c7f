// Empty messages: rank 1 signals that rank 0 may put into its buffer, rank 0 signals that all puts are complete.
#pragma once

#include "harness/mpi/duplicate.hpp"
#include "kernels/methods/parts/transfer.hpp"

namespace earlybird {

class Exposure {
 public:
  // Collective.
  explicit Exposure(const Transfer &transfer) : transfer_(transfer), duplicate_(transfer.team.comm()) {}

  void open() { transfer_.sends() ? receive(open_tag) : send(open_tag); }
  void close() { transfer_.sends() ? send(close_tag) : receive(close_tag); }

 private:
  static constexpr int open_tag = 1, close_tag = 2;

  void send(int tag) { MPI_Send(nullptr, 0, MPI_BYTE, transfer_.peer(), tag, duplicate_.comm()); }
  void receive(int tag) { MPI_Recv(nullptr, 0, MPI_BYTE, transfer_.peer(), tag, duplicate_.comm(), MPI_STATUS_IGNORE); }

  const Transfer &transfer_;
  const Duplicate duplicate_;
};

}  // namespace earlybird
