// Method `rma-single-active`: all threads put into one window; rank 1 opens its epochs with post and closes them with wait.
#pragma once

#include "kernels/methods/method.hpp"
#include "kernels/methods/parts/peer_group.hpp"
#include "kernels/methods/parts/window.hpp"

namespace earlybird {

class RmaSingleActive : public Method {
 public:
  RmaSingleActive(Transfer &transfer, const std::string &name) : Method(transfer), window_(transfer, name), peer_(transfer) {}

  void start() override {
    if (transfer_.sends()) MPI_Win_start(peer_.group(), 0, window_.win());
    else MPI_Win_post(peer_.group(), 0, window_.win());
  }
  void ready(int partition) override { window_.put(partition); }
  void wait() override {
    if (transfer_.sends()) MPI_Win_complete(window_.win());
    else MPI_Win_wait(window_.win());
  }

 private:
  Window window_;
  PeerGroup peer_;
};

}  // namespace earlybird
