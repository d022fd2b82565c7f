// Method `many`: one persistent message per partition, started when it is ready, on a separate communicator per thread.
#pragma once

#include <memory>
#include <vector>

#include "harness/mpi/duplicate.hpp"
#include "kernels/methods/method.hpp"
#include "kernels/methods/parts/partition_messages.hpp"

namespace earlybird {

class Many : public Method {
 public:
  explicit Many(Transfer &transfer) : Method(transfer) {
    std::vector<MPI_Comm> comms;
    for (int thread = 0; thread < transfer.num_threads; ++thread) {
      duplicates_.push_back(std::make_unique<Duplicate>(transfer.team.comm()));
      comms.push_back(duplicates_.back()->comm());
    }
    messages_ = std::make_unique<PartitionMessages>(transfer, comms, tag);
  }

  void start() override {
    if (!transfer_.sends() && !transfer_.threads_receive) messages_->receive_all();
  }
  void ready(int partition) override { messages_->send(partition); }
  void all_of_thread_ready(int thread) override { messages_->wait_for_thread(thread); }
  bool arrived(int partition) override { return messages_->test(partition); }
  void receive(int thread) override {
    messages_->receive_for_thread(thread);
    messages_->wait_for_thread(thread);
  }
  void wait() override { messages_->wait_for_all(); }

 private:
  std::vector<std::unique_ptr<Duplicate>> duplicates_;
  std::unique_ptr<PartitionMessages> messages_;  // destroyed before the communicators
};

}  // namespace earlybird
