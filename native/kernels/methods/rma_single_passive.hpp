// Method `rma-single-passive`: all threads put into one permanently locked window; empty messages control the exposure.
#pragma once

#include "kernels/methods/method.hpp"
#include "kernels/methods/parts/exposure.hpp"
#include "kernels/methods/parts/window.hpp"

namespace earlybird {

class RmaSinglePassive : public Method {
 public:
  RmaSinglePassive(Transfer &transfer, const std::string &name) : Method(transfer), window_(transfer, name), exposure_(transfer) {
    window_.require_unified_memory(name);
    // No other rank locks the window, so MPI_MODE_NOCHECK is valid.
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
