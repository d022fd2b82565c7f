// The trees of our own algorithms, seen from one rank.
#pragma once

#include <vector>

namespace earlybird {

// The trees below use ranks relative to the root: v is the rank (root + v) modulo the number of ranks.
struct Tree {
  int parent = -1;            // none at the root
  std::vector<int> children;  // in sending order
};

// From the root to every other rank: 0 -> 1, 0 -> 2, 0 -> 3, ...
Tree linear_tree(int rank, int num_ranks, int root);

// From each rank to the next: 0 -> 1 -> 2 -> 3 ...
Tree chain_tree(int rank, int num_ranks, int root);

// Doubling distances: every rank with the data sends it to distance 1, then 2, then 4: 0 -> 1; 0 -> 2, 1 -> 3; 0 -> 4,
// 1 -> 5, ... Works for any number of ranks; ranks beyond it are omitted.
Tree binomial_tree(int rank, int num_ranks, int root);

}  // namespace earlybird
