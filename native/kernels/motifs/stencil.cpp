// One function updates a row of cells in all computations, so that their results are equal bit by bit.
#include "kernels/motifs/stencil.hpp"

#include <algorithm>

namespace earlybird {

namespace {

// The weights of a cell and of its neighbours add up to 1, so that values stay in [0, 1) over any number of steps.
constexpr double weight_of_7 = 1.0 / 16, centre_of_7 = 10.0 / 16, weight_of_27 = 1.0 / 64, centre_of_27 = 38.0 / 64;

void update_row_7(const double *from, double *to, int count, std::ptrdiff_t y, std::ptrdiff_t z) {
  for (int k = 0; k < count; ++k) {
    const double *const cell = from + k;
    to[k] = centre_of_7 * cell[0] + weight_of_7 * (((cell[-1] + cell[1]) + (cell[-y] + cell[y])) + (cell[-z] + cell[z]));
  }
}

double sum_of_3(const double *cell) { return (cell[-1] + cell[1]) + cell[0]; }

double sum_of_9(const double *cell, std::ptrdiff_t y) { return (sum_of_3(cell - y) + sum_of_3(cell + y)) + sum_of_3(cell); }

void update_row_27(const double *from, double *to, int count, std::ptrdiff_t y, std::ptrdiff_t z) {
  for (int k = 0; k < count; ++k) {
    const double *const cell = from + k;
    const double around = (cell[-1] + cell[1]) + (sum_of_3(cell - y) + sum_of_3(cell + y));
    to[k] = centre_of_27 * cell[0] + weight_of_27 * ((sum_of_9(cell - z, y) + sum_of_9(cell + z, y)) + around);
  }
}

}  // namespace

double initial_value(int variable, const Triple &index) {
  std::uint64_t key = static_cast<std::uint64_t>(variable) + 1;
  // The finalizer of splitmix64 after each coordinate.
  for (const int coordinate : index) {
    key = (key ^ static_cast<std::uint64_t>(coordinate)) + 0x9E3779B97F4A7C15u;
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
    key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
    key ^= key >> 31;
  }
  constexpr double step = 1.0 / 9007199254740992.0;  // 2^-53
  return static_cast<double>(key >> 11) * step;
}

Cells::Cells(const Triple &size, int num_variables) : size_(size), num_variables_(num_variables) {
  strides_[0] = 1;
  strides_[1] = size[0] + 2;
  strides_[2] = strides_[1] * (size[1] + 2);
  for (std::vector<double> &copy : copies_) copy.resize(static_cast<std::size_t>(variable_stride() * num_variables));
}

void Cells::initialize(const Triple &begin, const Triple &cells, bool periodic) {
  Triple local, index;
  for (int variable = 0; variable < num_variables_; ++variable) {
    for (local[2] = -1; local[2] <= size_[2]; ++local[2]) {
      for (local[1] = -1; local[1] <= size_[1]; ++local[1]) {
        for (local[0] = -1; local[0] <= size_[0]; ++local[0]) {
          for (std::size_t d = 0; d < 3; ++d) {
            index[d] = begin[d] + local[d];
            // A margin may be wider than the grid.
            if (periodic) index[d] = (index[d] % cells[d] + cells[d]) % cells[d];
          }
          *at(0, variable, local) = *at(1, variable, local) = initial_value(variable, index);
        }
      }
    }
  }
}

void Cells::update(int from, const Range &x, const Range &y, const Range &z, int num_points) {
  const auto update_row = num_points == 7 ? update_row_7 : update_row_27;
  for (int variable = 0; variable < num_variables_; ++variable) {
    for (int k = z.begin; k < z.end; ++k) {
      for (int j = y.begin; j < y.end; ++j)
        update_row(at(from, variable, {x.begin, j, k}), at(1 - from, variable, {x.begin, j, k}), x.size(), strides_[1],
                   strides_[2]);
    }
  }
}

Reference compute_alone(const ProcessGrid &grid, int rank, bool periodic, int num_variables, int num_points, int num_steps) {
  const int margin = num_steps - 1;
  Triple size, begin;
  for (std::size_t d = 0; d < 3; ++d) {
    const Range own = grid.cells_of(rank, static_cast<int>(d));
    size[d] = own.size() + 2 * margin;
    begin[d] = own.begin - margin;
  }
  Reference reference{Cells(size, num_variables), 0, margin};
  reference.cells.initialize(begin, grid.cells(), periodic);
  for (int step = 0; step < num_steps; ++step) {
    Range ranges[3];
    for (std::size_t d = 0; d < 3; ++d) {
      // Each step knows the neighbours of one layer less. Cells outside of the grid keep their values.
      ranges[d] = {step, size[d] - step};
      if (!periodic) ranges[d] = {std::max(step, -begin[d]), std::min(size[d] - step, grid.cells()[d] - begin[d])};
    }
    reference.cells.update(reference.copy, ranges[0], ranges[1], ranges[2], num_points);
    reference.copy = 1 - reference.copy;
  }
  return reference;
}

}  // namespace earlybird
