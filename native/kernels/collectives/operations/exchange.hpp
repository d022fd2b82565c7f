// Base of the operations in which each rank has a block for each of its destinations, or one block for all of them.
#pragma once

#include "kernels/collectives/operations/collective.hpp"
#include "kernels/collectives/parts/varied_blocks.hpp"

namespace earlybird {

// The blocks of one rank. If `same_to_all`, `sends` has one block, its own, which every destination receives.
struct ExchangedBlocks {
  VariedBlocks sends, receives;
  bool same_to_all;
};

// A block of every pair of ranks, for alltoallv; of every rank, for allgatherv.
ExchangedBlocks blocks_of_all_pairs(const Shape &shape);
ExchangedBlocks blocks_of_all_ranks(const Shape &shape);

// Blocks of the ranks that are neighbours in the topology: one for each destination, or the same for all.
ExchangedBlocks blocks_of_neighbours(const Shape &shape);
ExchangedBlocks same_block_of_neighbours(const Shape &shape);

class Exchange : public Collective {
 public:
  Exchange(const Shape &shape, const ExchangedBlocks &blocks)
      : Collective(shape, blocks.sends.total_bytes(), blocks.receives.total_bytes()), blocks_(blocks) {}

  void prepare(int iteration) override;
  bool received(int iteration) const override;
  std::map<std::string, Maker> own_algorithms() override;

 protected:
  const ExchangedBlocks blocks_;

 private:
  std::uint64_t key(int from, int to, int iteration) const;
  std::vector<int> destinations() const;
};

}  // namespace earlybird
