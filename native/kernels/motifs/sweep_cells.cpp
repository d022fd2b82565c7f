// One function sweeps over a row of cells in all computations, so that their results are equal bit by bit.
#include "kernels/motifs/sweep_cells.hpp"

#include <algorithm>
#include <limits>

#include "kernels/motifs/stencil.hpp"

namespace earlybird {

namespace {

// Returns the value that leaves the row. Each cell averages what enters it and its source, damped, so that values stay
// in [0, 1) over any number of cells.
double sweep_row(const double *source, double *result, double *from_y, double *from_z, double from_x, int count, int direction,
                 double damping, bool first) {
  for (int n = 0, i = direction > 0 ? 0 : count - 1; n < count; ++n, i += direction) {
    const double value = damping * ((source[i] + from_x) + (from_y[i] + from_z[i]));
    from_x = from_y[i] = from_z[i] = value;
    result[i] = first ? value : result[i] + value;
  }
  return from_x;
}

}  // namespace

SweepCells::SweepCells(const Triple &begin, const Triple &size, int num_angles) : size_(size) {
  const auto plane = static_cast<std::size_t>(size[0]) * static_cast<std::size_t>(size[1]);
  sources_.reserve(plane * static_cast<std::size_t>(size[2]));
  for (int z = 0; z < size[2]; ++z) {
    for (int y = 0; y < size[1]; ++y) {
      for (int x = 0; x < size[0]; ++x) sources_.push_back(initial_value(0, {begin[0] + x, begin[1] + y, begin[2] + z}));
    }
  }
  results_.resize(sources_.size() * static_cast<std::size_t>(num_angles));
  from_z_.resize(plane * static_cast<std::size_t>(num_angles));
}

void SweepCells::sweep(int corner, int angle, const Range &z, double *from_x, double *from_y) {
  const Corner direction = corners[corner];
  const double damping = 0.25 * (1 - 1.0 / (8 + angle));
  double *const from_z = from_z_.data() + static_cast<std::ptrdiff_t>(angle) * size_[0] * size_[1];
  if (z.begin == 0) std::fill_n(from_z, size_[0] * size_[1], 0.0);
  for (int k = z.begin; k < z.end; ++k, from_x += size_[1], from_y += size_[0]) {
    for (int n = 0, j = direction.y > 0 ? 0 : size_[1] - 1; n < size_[1]; ++n, j += direction.y) {
      double *const result = results_.data() + angle * num_cells() + offset(j, k);
      from_x[j] = sweep_row(sources_.data() + offset(j, k), result, from_y, from_z + static_cast<std::ptrdiff_t>(j) * size_[0],
                            from_x[j], size_[0], direction.x, damping, corner == 0);
    }
  }
}

void SweepCells::forget() { std::fill(results_.begin(), results_.end(), std::numeric_limits<double>::quiet_NaN()); }

}  // namespace earlybird
