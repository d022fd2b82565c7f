// One persistent message per partition, on the communicator of its thread.
#pragma once

#include <vector>

#include "kernels/methods/parts/transfer.hpp"

namespace earlybird {

class PartitionMessages {
 public:
  // Each message of a communicator has its own tag, so that matching does not depend on the order of messages.
  PartitionMessages(Transfer &transfer, const std::vector<MPI_Comm> &comm_of_thread, int first_tag)
      : transfer_(transfer), requests_(static_cast<std::size_t>(transfer.num_partitions), MPI_REQUEST_NULL) {
    const int count = static_cast<int>(transfer.partition_bytes());
    for (int k = 0; k < transfer.num_partitions; ++k) {
      const int thread = transfer.thread_of(k), tag = first_tag + k - transfer.first_of(thread);
      const MPI_Comm comm = comm_of_thread[static_cast<std::size_t>(thread)];
      if (transfer.sends()) MPI_Send_init(transfer.partition(k), count, MPI_BYTE, transfer.peer(), tag, comm, request(k));
      else MPI_Recv_init(transfer.partition(k), count, MPI_BYTE, transfer.peer(), tag, comm, request(k));
    }
  }
  ~PartitionMessages() {
    for (MPI_Request &request : requests_) MPI_Request_free(&request);
  }
  PartitionMessages(const PartitionMessages &) = delete;
  PartitionMessages &operator=(const PartitionMessages &) = delete;

  void receive_all() { MPI_Startall(transfer_.num_partitions, requests_.data()); }
  void receive_for_thread(int thread) { MPI_Startall(transfer_.partitions_of(thread), request(transfer_.first_of(thread))); }
  void send(int partition) { MPI_Start(request(partition)); }
  void wait_for_thread(int thread) {
    MPI_Waitall(transfer_.partitions_of(thread), request(transfer_.first_of(thread)), MPI_STATUSES_IGNORE);
  }
  bool test(int partition) {
    int done = 0;
    MPI_Test(request(partition), &done, MPI_STATUS_IGNORE);
    return done != 0;
  }
  void wait_for_all() { MPI_Waitall(transfer_.num_partitions, requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  MPI_Request *request(int k) { return &requests_[static_cast<std::size_t>(k)]; }

  Transfer &transfer_;
  std::vector<MPI_Request> requests_;
};

}  // namespace earlybird
