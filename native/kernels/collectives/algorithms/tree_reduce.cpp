// Posts receives in advance, into a separate buffer per child.
#include "kernels/collectives/algorithms/tree_reduce.hpp"

#include <algorithm>
#include <utility>

namespace earlybird {

TreeReduce::TreeReduce(Team &team, MPI_Comm comm, Tree tree, Segments segments, const Summands &summands, const std::byte *own,
                       std::byte *result)
    : team_(team),
      comm_(comm),
      tree_(std::move(tree)),
      segments_(segments),
      summands_(summands),
      own_(own),
      receives_(tree_.children.size(), segments_.count()),
      sends_(1, segments_.count()) {
  std::reverse(tree_.children.begin(), tree_.children.end());
  for (std::size_t child = 0; child < tree_.children.size(); ++child) {
    if (child == 0 && tree_.parent < 0) {
      received_.push_back(result);
    } else {
      memory_.emplace_back(segments_.size_bytes());
      received_.push_back(memory_.back().data());
    }
  }
}

void TreeReduce::receive(std::size_t k) {
  if (k >= segments_.count()) return;
  for (std::size_t child = 0; child < tree_.children.size(); ++child)
    MPI_Irecv(received_[child] + segments_.offset(k), segments_.bytes(k), MPI_BYTE, tree_.children[child], tag, comm_,
              receives_.of(k) + child);
}

// Segment k of the sum over this rank and its subtree.
const std::byte *TreeReduce::sum_up(std::size_t k) {
  const std::size_t offset = segments_.offset(k);
  if (received_.empty()) return own_ + offset;
  const int count = summands_.count(static_cast<std::size_t>(segments_.bytes(k)));
  std::byte *const sum = received_.front() + offset;
  for (std::size_t child = 0; child < received_.size(); ++child) {
    team_.wait(receives_.of(k) + child, 1);
    MPI_Reduce_local(child == 0 ? own_ + offset : received_[child] + offset, sum, count, summands_.type(), summands_.op());
  }
  return sum;
}

void TreeReduce::run() {
  for (std::size_t k = 0; k < max_segments_in_flight; ++k) receive(k);
  for (std::size_t k = 0; k < segments_.count(); ++k) {
    const std::byte *const sum = sum_up(k);
    receive(k + max_segments_in_flight);
    if (tree_.parent < 0) continue;
    team_.wait(sends_.of(k), 1);
    MPI_Isend(sum, segments_.bytes(k), MPI_BYTE, tree_.parent, tag, comm_, sends_.of(k));
  }
  if (tree_.parent >= 0) team_.wait(sends_.all(), sends_.count());
}

}  // namespace earlybird
