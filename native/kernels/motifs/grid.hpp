// Grids of ranks and of cells, and the block of cells that each rank owns.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "harness/request/request.hpp"

namespace earlybird {

// Numbers along x, y and z.
using Triple = std::array<int, 3>;

// Cells from `begin` to before `end` along one dimension.
struct Range {
  int begin, end;

  int size() const { return end - begin; }
};

// The part `k` when `cells` are divided among `parts` as evenly as possible: sizes differ by one at most.
Range part_of(int cells, int parts, int k);

// The largest of these parts.
int largest_part(int cells, int parts);

// The value of `key`, such as 64x32x32; ends the program with a message unless it is three numbers from 1 up.
Triple read_triple(const Point &point, const std::string &key);

// The ranks as a grid, x fastest.
class ProcessGrid {
 public:
  // Ends the program with a message unless the grid of `point` has `num_ranks` ranks, and every rank some of its cells.
  ProcessGrid(const Point &point, int num_ranks);

  const Triple &ranks() const { return ranks_; }
  const Triple &cells() const { return cells_; }  // of all ranks together

  Triple position_of(int rank) const;
  Range cells_of(int rank, int dimension) const;
  // The rank one step along `direction`, whose entries are -1, 0 and 1; none beyond the edge of a grid that is not periodic.
  std::optional<int> neighbour(int rank, const Triple &direction, bool periodic) const;

 private:
  Triple ranks_, cells_;
};

}  // namespace earlybird
