// Cells of a block with a layer of ghost cells, and their update by a stencil of 7 or 27 points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/motifs/grid.hpp"

namespace earlybird {

// The value with which the cell at this global index starts, in [0, 1); cells outside of the grid have one too.
double initial_value(int variable, const Triple &index);

// Two copies of the cells of a block: a step reads one and writes the other.
class Cells {
 public:
  Cells(const Triple &size, int num_variables);

  const Triple &size() const { return size_; }  // without ghost cells
  int num_variables() const { return num_variables_; }
  // Distances in doubles between neighbours along x, y and z, and between variables.
  std::ptrdiff_t stride(std::size_t dimension) const { return strides_[dimension]; }
  std::ptrdiff_t variable_stride() const { return strides_[2] * (size_[2] + 2); }

  // The cell at this index, in which -1 and size() are ghost cells, of copy 0 or 1.
  double *at(int copy, int variable, const Triple &index) {
    return copies_[copy].data() + variable * variable_stride() + (index[0] + 1) + (index[1] + 1) * strides_[1] +
           (index[2] + 1) * strides_[2];
  }

  // Sets both copies to the initial values; `begin` is the global index of cell (0, 0, 0) in a grid of `cells`.
  void initialize(const Triple &begin, const Triple &cells, bool periodic);

  // Computes all variables of the cells in x, y and z from copy `from` into the other.
  void update(int from, const Range &x, const Range &y, const Range &z, int num_points);

 private:
  Triple size_;
  int num_variables_;
  std::ptrdiff_t strides_[3];
  std::vector<double> copies_[2];
};

// The cells of `rank` after `num_steps` steps from the initial values, computed from these alone, are in the returned copy of
// `cells`: its cell (0, 0, 0) is `num_steps` - 1 cells before the rank's along each dimension.
struct Reference {
  Cells cells;
  int copy;
  int margin;
};
Reference compute_alone(const ProcessGrid &grid, int rank, bool periodic, int num_variables, int num_points, int num_steps);

}  // namespace earlybird
