// The computation of a sweep: each cell depends on the cells before it along x, y and z.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/motifs/grid.hpp"

namespace earlybird {

// A corner of the process grid from which a sweep starts: 1 if it goes up along x or y, -1 if it goes down.
struct Corner {
  int x, y;
};
constexpr Corner corners[] = {{1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
constexpr int num_corners = 4;

// Cells that several angles sweep over. The result of a cell is the sum over the corners, for each angle.
class SweepCells {
 public:
  // The cells from `begin` of a larger grid, with the source of each.
  SweepCells(const Triple &begin, const Triple &size, int num_angles);

  const Triple &size() const { return size_; }

  // Sweeps one angle over the planes of `z`. `from_x` holds the values that enter through the side of each row of each
  // plane, and then those that leave; `from_y` likewise for each column. Those along z stay here between calls: the first
  // plane begins a sweep.
  void sweep(int corner, int angle, const Range &z, double *from_x, double *from_y);

  const double *row(int angle, int y, int z) const { return results_.data() + offset(y, z) + angle * num_cells(); }
  // No step of a sweep may rely on earlier results.
  void forget();

 private:
  std::ptrdiff_t offset(int y, int z) const { return (static_cast<std::ptrdiff_t>(z) * size_[1] + y) * size_[0]; }
  std::ptrdiff_t num_cells() const { return offset(0, size_[2]); }

  Triple size_;
  std::vector<double> sources_, results_;
  std::vector<double> from_z_;  // by angle, then by cell of a plane
};

}  // namespace earlybird
