// The topologies of neighbourhood collectives: who sends to whom.
#pragma once

#include <string>
#include <vector>

namespace earlybird {

// `ring`: each rank exchanges with the previous and the next one. `grid-5` and `grid-9`: with its neighbours in a periodic
// 2-D grid, nearest to a square, that ranks fill row by row; without and with those across corners. `random-K`: each rank sends
// to K others and receives from K others, the same ones in every launch. A neighbour occurs once, even where the grid is so
// narrow that it is on both sides; no rank is its own neighbour.
class Topology {
 public:
  // Ends the program with a message if the name is unknown or needs more ranks.
  Topology(const std::string &name, int num_ranks);

  const std::vector<int> &destinations(int rank) const { return destinations_[static_cast<std::size_t>(rank)]; }
  std::vector<int> sources(int rank) const;

 private:
  int num_ranks_;
  std::vector<std::vector<int>> destinations_;
};

}  // namespace earlybird
