// Posts receives in advance and sends to all children at the same time.
#include "kernels/collectives/algorithms/tree_bcast.hpp"

#include <utility>

namespace earlybird {

TreeBcast::TreeBcast(Team &team, MPI_Comm comm, Tree tree, Segments segments, std::byte *data)
    : team_(team),
      comm_(comm),
      tree_(std::move(tree)),
      segments_(segments),
      data_(data),
      receives_(1, segments_.count()),
      sends_(tree_.children.size(), segments_.count()) {}

void TreeBcast::receive(std::size_t k) {
  if (tree_.parent < 0 || k >= segments_.count()) return;
  MPI_Irecv(data_ + segments_.offset(k), segments_.bytes(k), MPI_BYTE, tree_.parent, tag, comm_, receives_.of(k));
}

void TreeBcast::run() {
  for (std::size_t k = 0; k < max_segments_in_flight; ++k) receive(k);
  for (std::size_t k = 0; k < segments_.count(); ++k) {
    if (tree_.parent >= 0) team_.wait(receives_.of(k), 1);
    receive(k + max_segments_in_flight);
    MPI_Request *const sends = sends_.of(k);
    team_.wait(sends, sends_.width());
    for (std::size_t child = 0; child < tree_.children.size(); ++child)
      MPI_Isend(data_ + segments_.offset(k), segments_.bytes(k), MPI_BYTE, tree_.children[child], tag, comm_, &sends[child]);
  }
  team_.wait(sends_.all(), sends_.count());
}

}  // namespace earlybird
