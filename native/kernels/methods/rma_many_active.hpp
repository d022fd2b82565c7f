// Method `rma-many-active`: each thread has its own window over its partitions, and its own epoch on this window.
#pragma once

#include <memory>
#include <vector>

#include "kernels/methods/method.hpp"
#include "kernels/methods/parts/peer_group.hpp"
#include "kernels/methods/parts/window.hpp"

namespace earlybird {

class RmaManyActive : public Method {
 public:
  RmaManyActive(Transfer &transfer, const std::string &name) : Method(transfer), peer_(transfer) {
    for (int thread = 0; thread < transfer.num_threads; ++thread)
      windows_.push_back(std::make_unique<Window>(transfer, name, thread));
  }

  void start() override {
    if (transfer_.sends()) return;
    for (auto &window : windows_) MPI_Win_post(peer_.group(), 0, window->win());
  }
  void ready(int partition) override {
    const int thread = transfer_.thread_of(partition);
    if (partition == transfer_.first_of(thread)) MPI_Win_start(peer_.group(), 0, window_of(thread).win());
    window_of(thread).put(partition);
  }
  void all_of_thread_ready(int thread) override { MPI_Win_complete(window_of(thread).win()); }
  void wait() override {
    if (transfer_.sends()) return;
    for (auto &window : windows_) MPI_Win_wait(window->win());
  }

 private:
  Window &window_of(int thread) { return *windows_[static_cast<std::size_t>(thread)]; }

  std::vector<std::unique_ptr<Window>> windows_;
  PeerGroup peer_;
};

}  // namespace earlybird
