// A block along a dimension begins where an even share of the cells, rounded down, does.
#include "kernels/motifs/grid.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "harness/text/numbers.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {
constexpr int most = 99'999'999;
}  // namespace

Range part_of(int cells, int parts, int k) {
  const auto begin_of = [&](int part) { return static_cast<int>(static_cast<long long>(cells) * part / parts); };
  return {begin_of(k), begin_of(k + 1)};
}

int largest_part(int cells, int parts) { return (cells + parts - 1) / parts; }

Triple read_triple(const Point &point, const std::string &key) {
  std::istringstream stream(point.text(key));
  std::vector<int> numbers;
  for (std::string part; std::getline(stream, part, 'x');)
    numbers.push_back(static_cast<int>(std::clamp<long long>(read_integer(part).value_or(0), 0, most + 1)));
  const bool valid = numbers.size() == 3 && *std::min_element(numbers.begin(), numbers.end()) >= 1 &&
                     *std::max_element(numbers.begin(), numbers.end()) <= most;
  if (!valid || point.text(key).back() == 'x')
    refuse("the request gives " + key + "=" + point.text(key) + "; give three numbers from 1 to " + std::to_string(most) +
           ", such as 4x2x1");
  return {numbers[0], numbers[1], numbers[2]};
}

ProcessGrid::ProcessGrid(const Point &point, int num_ranks)
    : ranks_(read_triple(point, "process_grid")), cells_(read_triple(point, "cells")) {
  if (static_cast<long long>(ranks_[0]) * ranks_[1] * ranks_[2] != num_ranks)
    refuse("the request gives process_grid=" + point.text("process_grid") + " and there are " + std::to_string(num_ranks) +
           " ranks; give a grid of as many");
  for (std::size_t d = 0; d < 3; ++d) {
    if (cells_[d] < ranks_[d])
      refuse("the request gives cells=" + point.text("cells") + " process_grid=" + point.text("process_grid") +
             "; give at least one cell per rank along each dimension");
  }
}

Triple ProcessGrid::position_of(int rank) const {
  return {rank % ranks_[0], rank / ranks_[0] % ranks_[1], rank / ranks_[0] / ranks_[1]};
}

Range ProcessGrid::cells_of(int rank, int dimension) const {
  const auto d = static_cast<std::size_t>(dimension);
  return part_of(cells_[d], ranks_[d], position_of(rank)[d]);
}

std::optional<int> ProcessGrid::neighbour(int rank, const Triple &direction, bool periodic) const {
  Triple position = position_of(rank);
  for (std::size_t d = 0; d < 3; ++d) {
    const int moved = position[d] + direction[d];
    if (!periodic && (moved < 0 || moved >= ranks_[d])) return std::nullopt;
    position[d] = (moved + ranks_[d]) % ranks_[d];
  }
  return position[0] + ranks_[0] * (position[1] + ranks_[1] * position[2]);
}

}  // namespace earlybird
