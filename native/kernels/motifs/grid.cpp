// A block along a dimension begins where an even share of the cells, rounded down, does.
#include "kernels/motifs/grid.hpp"

#include <cstdio>

#include "harness/text/refuse.hpp"

namespace earlybird {

Range part_of(int cells, int parts, int k) {
  const auto begin_of = [&](int part) { return static_cast<int>(static_cast<long long>(cells) * part / parts); };
  return {begin_of(k), begin_of(k + 1)};
}

int largest_part(int cells, int parts) { return (cells + parts - 1) / parts; }

Triple read_triple(const Point &point, const std::string &key) {
  const std::string text = point.text(key);
  Triple triple{};
  char end = 0;
  const int read = std::sscanf(text.c_str(), "%8dx%8dx%8d%c", &triple[0], &triple[1], &triple[2], &end);
  if (read != 3 || triple[0] < 1 || triple[1] < 1 || triple[2] < 1)
    refuse("the request gives " + key + "=" + text + "; give three numbers from 1 up, such as 4x2x1");
  return triple;
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
