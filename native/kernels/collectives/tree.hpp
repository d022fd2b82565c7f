// The trees of our own algorithms, seen from one rank.
#pragma once

#include <vector>

namespace earlybird {

// Ranks count from the root: rank v stands for (root + v) modulo their number.
struct Tree {
  int parent = -1;            // none at the root
  std::vector<int> children;  // in the order in which they are sent to
};

// The root and everyone else: 0 -> 1, 0 -> 2, 0 -> 3, ...
Tree linear_tree(int rank, int num_ranks, int root);

// Each rank and the next: 0 -> 1 -> 2 -> 3 ...
Tree chain_tree(int rank, int num_ranks, int root);

// Doubling distances: whoever has the data sends it 1 further, then 2, then 4: 0 -> 1; 0 -> 2, 1 -> 3; 0 -> 4, 1 -> 5,
// ... Any number of ranks will do: those beyond it are left out.
Tree binomial_tree(int rank, int num_ranks, int root);

}  // namespace earlybird
