// Allreduce: the sum of all ranks' buffers at every rank.
#pragma once

#include "kernels/collectives/operations/collective.hpp"
#include "kernels/collectives/parts/summands.hpp"

namespace earlybird {

class Allreduce : public Collective {
 public:
  explicit Allreduce(const Shape &shape) : Collective(shape, shape.size_bytes, shape.size_bytes), summands_(shape.size_bytes) {}

  void prepare(int iteration) override { summands_.fill(in_.data(), shape_.team.rank(), iteration); }
  void call(MPI_Comm comm) override {
    MPI_Allreduce(in_.data(), out_.data(), summands_.count(shape_.size_bytes), summands_.type(), summands_.op(), comm);
  }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Allreduce_init(in_.data(), out_.data(), summands_.count(shape_.size_bytes), summands_.type(), summands_.op(), comm,
                       MPI_INFO_NULL, request);
  }
  bool received(int iteration) const override { return summands_.hold(out_.data(), shape_.team.size(), iteration); }

 private:
  Summands summands_;
};

}  // namespace earlybird
