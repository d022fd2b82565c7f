// Method `single`: one persistent message, started when all partitions are ready.
#pragma once

#include "kernels/methods/method.hpp"

namespace earlybird {

class Single : public Method {
 public:
  explicit Single(Transfer &transfer) : Method(transfer) {
    const int count = static_cast<int>(transfer.size_bytes);
    if (transfer.sends())
      MPI_Send_init(transfer.buffer.data(), count, MPI_BYTE, transfer.peer(), tag, transfer.team.comm(), &request_);
    else MPI_Recv_init(transfer.buffer.data(), count, MPI_BYTE, transfer.peer(), tag, transfer.team.comm(), &request_);
  }
  ~Single() override { MPI_Request_free(&request_); }

  void start() override {
    if (!transfer_.sends()) MPI_Start(&request_);
  }
  void ready(int) override {}
  void all_ready() override { MPI_Start(&request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace earlybird
