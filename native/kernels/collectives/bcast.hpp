// Broadcast: the root's buffer to every rank.
#pragma once

#include "kernels/collectives/collective.hpp"

namespace earlybird {

class Bcast : public Collective {
 public:
  explicit Bcast(const Shape &shape) : Collective(shape, shape.size_bytes, 0) {}

  void prepare(int iteration) override {
    if (shape_.at_root()) fill(in_.data(), shape_.size_bytes, key(iteration));
  }
  void call(MPI_Comm comm) override { MPI_Bcast(in_.data(), shape_.count(), MPI_BYTE, shape_.root, comm); }
  bool received(int iteration) const override { return holds(in_.data(), shape_.size_bytes, key(iteration)); }

  std::map<std::string, Maker> own_algorithms() override;

 private:
  std::uint64_t key(int iteration) const { return content_key(shape_.root, 0, iteration); }
};

}  // namespace earlybird
