// Lists the destinations of every rank; sources follow from them.
#include "kernels/collectives/parts/topology.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "harness/text/numbers.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/collectives/parts/skewed_counts.hpp"

namespace earlybird {

namespace {

using Steps = std::vector<std::pair<int, int>>;

const Steps sides = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}};
const Steps corners = {{-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
constexpr std::uint64_t seed_of_offsets = 1, seed_of_labels = 2;

void append_once(std::vector<int> &ranks, int rank, int own) {
  if (rank != own && std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
}

// In a periodic grid of `num_columns` columns.
std::vector<std::vector<int>> in_grid(int num_ranks, int num_columns, const Steps &steps) {
  const int num_rows = num_ranks / num_columns;
  std::vector<std::vector<int>> destinations(static_cast<std::size_t>(num_ranks));
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (const auto &[down, right] : steps) {
      const int row = (rank / num_columns + down + num_rows) % num_rows;
      const int column = (rank % num_columns + right + num_columns) % num_columns;
      append_once(destinations[static_cast<std::size_t>(rank)], row * num_columns + column, rank);
    }
  }
  return destinations;
}

// Relabelled ranks send to the ranks at `degree` distances, so each rank has as many sources as destinations.
std::vector<std::vector<int>> at_random(int num_ranks, int degree) {
  const std::vector<int> label = permutation(num_ranks, seed_of_labels), offset = permutation(num_ranks - 1, seed_of_offsets);
  std::vector<std::vector<int>> destinations(static_cast<std::size_t>(num_ranks));
  for (int k = 0; k < num_ranks; ++k) {
    std::vector<int> &of_rank = destinations[static_cast<std::size_t>(label[static_cast<std::size_t>(k)])];
    for (int d = 0; d < degree; ++d)
      of_rank.push_back(label[static_cast<std::size_t>((k + 1 + offset[static_cast<std::size_t>(d)]) % num_ranks)]);
  }
  return destinations;
}

// The number of columns of the grid nearest to a square, which has at least as many columns as rows.
int square_columns(int num_ranks) {
  int rows = 1;
  for (int k = 1; k * k <= num_ranks; ++k) {
    if (num_ranks % k == 0) rows = k;
  }
  return num_ranks / rows;
}

std::vector<std::vector<int>> destinations_in(const std::string &name, int num_ranks) {
  if (name == "ring") return in_grid(num_ranks, num_ranks, {{0, -1}, {0, 1}});
  if (name == "grid-5") return in_grid(num_ranks, square_columns(num_ranks), sides);
  if (name == "grid-9") {
    Steps all = sides;
    all.insert(all.end(), corners.begin(), corners.end());
    return in_grid(num_ranks, square_columns(num_ranks), all);
  }
  const std::string prefix = "random-";
  const std::optional<long long> degree = name.rfind(prefix, 0) == 0 ? read_integer(name.substr(prefix.size()))
                                                                     : std::optional<long long>();
  if (!degree || *degree < 1)
    refuse("the request gives topology=" + name + "; give ring, grid-5, grid-9, or random-K with K neighbours, such as random-4");
  if (*degree >= num_ranks)
    refuse("the request gives topology=" + name + " on " + std::to_string(num_ranks) + " ranks; start more than " +
           std::to_string(*degree));
  return at_random(num_ranks, static_cast<int>(*degree));
}

}  // namespace

Topology::Topology(const std::string &name, int num_ranks)
    : num_ranks_(num_ranks), destinations_(destinations_in(name, num_ranks)) {}

std::vector<int> Topology::sources(int rank) const {
  std::vector<int> found;
  for (int other = 0; other < num_ranks_; ++other) {
    const std::vector<int> &of_other = destinations(other);
    if (std::find(of_other.begin(), of_other.end(), rank) != of_other.end()) found.push_back(other);
  }
  return found;
}

}  // namespace earlybird
