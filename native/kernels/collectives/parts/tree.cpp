// Builds the trees with ranks relative to the root, then converts them to actual ranks.
#include "kernels/collectives/parts/tree.hpp"

namespace earlybird {

namespace {

int relative_rank(int rank, int num_ranks, int root) { return (rank - root + num_ranks) % num_ranks; }

Tree rotate_to_root(Tree tree, int num_ranks, int root) {
  if (tree.parent >= 0) tree.parent = (tree.parent + root) % num_ranks;
  for (int &child : tree.children) child = (child + root) % num_ranks;
  return tree;
}

}  // namespace

Tree linear_tree(int rank, int num_ranks, int root) {
  Tree tree;
  if (rank != root) tree.parent = 0;
  for (int v = 1; rank == root && v < num_ranks; ++v) tree.children.push_back(v);
  return rotate_to_root(tree, num_ranks, root);
}

Tree chain_tree(int rank, int num_ranks, int root) {
  const int own = relative_rank(rank, num_ranks, root);
  Tree tree;
  tree.parent = own - 1;
  if (own + 1 < num_ranks) tree.children.push_back(own + 1);
  return rotate_to_root(tree, num_ranks, root);
}

Tree binomial_tree(int rank, int num_ranks, int root) {
  const int own = relative_rank(rank, num_ranks, root);
  Tree tree;
  int distance = 1;
  for (; distance <= own; distance *= 2) tree.parent = own - distance;  // the last one: the highest bit of `own`
  for (; own + distance < num_ranks; distance *= 2) tree.children.push_back(own + distance);
  return rotate_to_root(tree, num_ranks, root);
}

}  // namespace earlybird
