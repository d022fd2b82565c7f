// Broadcast: the root's buffer to every rank.
#pragma once

#include "kernels/collectives/algorithms/tree_bcast.hpp"
#include "kernels/collectives/operations/collective.hpp"

namespace earlybird {

class Bcast : public Collective {
 public:
  explicit Bcast(const Shape &shape) : Collective(shape, shape.size_bytes, 0) {}

  void prepare(int iteration) override {
    if (shape_.at_root()) fill(in_.data(), shape_.size_bytes, key(iteration));
  }
  void call(MPI_Comm comm) override { MPI_Bcast(in_.data(), shape_.count(), MPI_BYTE, shape_.root, comm); }
  void init(MPI_Comm comm, MPI_Request *request) override {
    MPI_Bcast_init(in_.data(), shape_.count(), MPI_BYTE, shape_.root, comm, MPI_INFO_NULL, request);
  }
  bool received(int iteration) const override { return holds(in_.data(), shape_.size_bytes, key(iteration)); }

  // The trees of our own broadcasts.
  std::map<std::string, Maker> own_algorithms() override {
    const auto down = [this](Tree (*tree)(int, int, int)) {
      return [this, tree](const MethodName &name, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
        Team &team = shape_.team;
        return std::make_unique<TreeBcast>(team, comm, tree(team.rank(), team.size(), shape_.root),
                                           Segments(shape_.size_bytes, name.segment_bytes), in_.data());
      };
    };
    return {{"own-linear", down(linear_tree)}, {"own-pipeline", down(chain_tree)}, {"own-binomial", down(binomial_tree)}};
  }

 private:
  std::uint64_t key(int iteration) const { return content_key(shape_.root, 0, iteration); }
};

}  // namespace earlybird
