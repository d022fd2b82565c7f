// Every rank computes the counts of its sources as they compute their own.
#include "kernels/collectives/operations/exchange.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/collectives/algorithms/linear_exchange.hpp"
#include "kernels/collectives/parts/skewed_counts.hpp"

namespace earlybird {

namespace {

std::vector<int> all_ranks(const Shape &shape) {
  std::vector<int> ranks(static_cast<std::size_t>(shape.team.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<std::size_t> counts_of(const Shape &shape, int sender, std::size_t num_blocks) {
  return skewed_counts(shape.size_bytes, static_cast<int>(num_blocks), shape.skew, static_cast<std::uint64_t>(sender));
}

// The bytes that each of `sources` sends to this rank; `destinations(rank)` are those of any rank.
template <class Destinations>
std::vector<std::size_t> received_counts(const Shape &shape, const std::vector<int> &sources, const Destinations &destinations) {
  std::vector<std::size_t> counts;
  for (const int source : sources) {
    const std::vector<int> &peers = destinations(source);
    const auto own = std::find(peers.begin(), peers.end(), shape.team.rank()) - peers.begin();
    counts.push_back(counts_of(shape, source, peers.size())[static_cast<std::size_t>(own)]);
  }
  return counts;
}

template <class Destinations>
ExchangedBlocks different_blocks(const Shape &shape, const std::vector<int> &sources, const Destinations &destinations) {
  const std::vector<int> &own = destinations(shape.team.rank());
  return {VariedBlocks(own, counts_of(shape, shape.team.rank(), own.size())),
          VariedBlocks(sources, received_counts(shape, sources, destinations)), false};
}

}  // namespace

ExchangedBlocks blocks_of_all_pairs(const Shape &shape) {
  const std::vector<int> all = all_ranks(shape);
  return different_blocks(shape, all, [&](int) -> const std::vector<int> & { return all; });
}

ExchangedBlocks blocks_of_all_ranks(const Shape &shape) {
  const std::vector<int> all = all_ranks(shape);
  const std::vector<std::size_t> counts = counts_of(shape, 0, all.size());
  const std::vector<std::size_t> own(1, counts[static_cast<std::size_t>(shape.team.rank())]);
  return {VariedBlocks({shape.team.rank()}, own), VariedBlocks(all, counts), true};
}

ExchangedBlocks blocks_of_neighbours(const Shape &shape) {
  const Topology &topology = *shape.topology;
  return different_blocks(shape, topology.sources(shape.team.rank()),
                          [&](int rank) -> const std::vector<int> & { return topology.destinations(rank); });
}

ExchangedBlocks same_block_of_neighbours(const Shape &shape) {
  const std::vector<int> sources = shape.topology->sources(shape.team.rank());
  return {VariedBlocks({shape.team.rank()}, {shape.size_bytes}),
          VariedBlocks(sources, std::vector<std::size_t>(sources.size(), shape.size_bytes)), true};
}

std::uint64_t Exchange::key(int from, int to, int iteration) const {
  return content_key(from, blocks_.same_to_all ? 0 : to, iteration);
}

void Exchange::prepare(int iteration) {
  const int own = shape_.team.rank();
  blocks_.sends.fill_all(in_.data(), [&](int to) { return key(own, to, iteration); });
}

bool Exchange::received(int iteration) const {
  const int own = shape_.team.rank();
  return blocks_.receives.hold_all(out_.data(), [&](int from) { return key(from, own, iteration); });
}

std::map<std::string, Collective::Maker> Exchange::own_algorithms() {
  const auto linear = [this](const MethodName &, MPI_Comm comm) -> std::unique_ptr<Algorithm> {
    const VariedBlocks &out = blocks_.receives, &in = blocks_.sends;
    std::vector<LinearExchange::Message> sends, receives;
    for (std::size_t k = 0; k < out.count(); ++k) receives.push_back({out.peer(k), out_.data() + out.offset(k), out.bytes(k)});
    if (!blocks_.same_to_all) {
      for (std::size_t k = 0; k < in.count(); ++k) sends.push_back({in.peer(k), in_.data() + in.offset(k), in.bytes(k)});
    } else {
      for (const int to : destinations()) sends.push_back({to, in_.data(), in.bytes(0)});
    }
    return std::make_unique<LinearExchange>(shape_.team, comm, sends, receives);
  };
  return {{"own-linear", linear}};
}

std::vector<int> Exchange::destinations() const {
  return shape_.topology != nullptr ? shape_.topology->destinations(shape_.team.rank()) : all_ranks(shape_);
}

}  // namespace earlybird
