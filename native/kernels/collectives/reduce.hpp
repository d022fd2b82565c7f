// Reduction: the sum of all ranks' buffers at the root.
#pragma once

#include "kernels/collectives/collective.hpp"
#include "kernels/collectives/summands.hpp"

namespace earlybird {

class Reduce : public Collective {
 public:
  explicit Reduce(const Shape &shape)
      : Collective(shape, shape.size_bytes, shape.at_root() ? shape.size_bytes : 0), summands_(shape.size_bytes) {}

  void prepare(int iteration) override { summands_.fill(in_.data(), shape_.team.rank(), iteration); }
  void call(MPI_Comm comm) override {
    MPI_Reduce(in_.data(), out_.data(), summands_.count(shape_.size_bytes), summands_.type(), summands_.op(), shape_.root, comm);
  }
  bool received(int iteration) const override {
    return !shape_.at_root() || summands_.hold(out_.data(), shape_.team.size(), iteration);
  }

  std::map<std::string, Maker> own_algorithms() override;

 private:
  Summands summands_;
};

}  // namespace earlybird
