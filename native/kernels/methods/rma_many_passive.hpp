// Method `rma-many-passive`: each thread puts into its own window over its partitions, and flushes this window.
#pragma once

#include <memory>
#include <vector>

#include "kernels/methods/method.hpp"
#include "kernels/methods/parts/exposure.hpp"
#include "kernels/methods/parts/window.hpp"

namespace earlybird {

class RmaManyPassive : public Method {
 public:
  RmaManyPassive(Transfer &transfer, const std::string &name) : Method(transfer) {
    for (int thread = 0; thread < transfer.num_threads; ++thread) {
      windows_.push_back(std::make_unique<Window>(transfer, name, thread));
      windows_.back()->require_unified_memory(name);
    }
    exposure_ = std::make_unique<Exposure>(transfer);
    if (!transfer.sends()) return;
    for (auto &window : windows_) MPI_Win_lock(MPI_LOCK_SHARED, transfer.peer(), MPI_MODE_NOCHECK, window->win());
  }
  ~RmaManyPassive() override {
    if (!transfer_.sends()) return;
    for (auto &window : windows_) MPI_Win_unlock(transfer_.peer(), window->win());
  }

  void start() override { exposure_->open(); }
  void ready(int partition) override { window_of(transfer_.thread_of(partition)).put(partition); }
  void all_of_thread_ready(int thread) override { MPI_Win_flush(transfer_.peer(), window_of(thread).win()); }
  void wait() override { exposure_->close(); }

 private:
  Window &window_of(int thread) { return *windows_[static_cast<std::size_t>(thread)]; }

  std::vector<std::unique_ptr<Window>> windows_;
  std::unique_ptr<Exposure> exposure_;
};

}  // namespace earlybird
