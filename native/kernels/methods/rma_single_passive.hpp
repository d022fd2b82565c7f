// Method `rma-single-passive`: all threads put into one window, locked for good; empty messages control the exposure.
#pragma once

#include "kernels/methods/exposure.hpp"
#include "kernels/methods/window.hpp"

namespace earlybird {

class RmaSinglePassive : public Method {
 public:
  RmaSinglePassive(Transfer &transfer, const std::string &name)
      : Method(transfer), window_(transfer, name), exposure_(transfer) {
    window_.need_one_copy(name);
    // Nobody else locks it, so rank 1 need not be asked.
    if (transfer.sends()) MPI_Win_lock(MPI_LOCK_SHARED, transfer.peer(), MPI_MODE_NOCHECK, window_.win());
  }
  ~RmaSinglePassive() override {
    if (transfer_.sends()) MPI_Win_unlock(transfer_.peer(), window_.win());
  }

  void start() override { exposure_.open(); }
  void ready(int partition) override { window_.put(partition); }
  void wait() override {
    if (transfer_.sends()) MPI_Win_flush(transfer_.peer(), window_.win());
    exposure_.close();
  }

 private:
  Window window_;
  Exposure exposure_;
};

}  // namespace earlybird
