// Method `rma-fence`: all threads put into one window between two fences.
#pragma once

#include "kernels/methods/method.hpp"
#include "kernels/methods/parts/window.hpp"

namespace earlybird {

class RmaFence : public Method {
 public:
  RmaFence(Transfer &transfer, const std::string &name) : Method(transfer), window_(transfer, name) {}

  void start() override { MPI_Win_fence(MPI_MODE_NOPRECEDE, window_.win()); }
  void ready(int partition) override { window_.put(partition); }
  void wait() override { MPI_Win_fence(MPI_MODE_NOSUCCEED, window_.win()); }

 private:
  Window window_;
};

}  // namespace earlybird
