// Styles `partitioned` and `earlybird`: one partitioned message per neighbour, by the MPI or by libearlybird; each thread
// marks the chunks that it owns as ready and tests whether those that it needs have arrived.
#pragma once

#include <vector>

#include "harness/mpi/duplicate.hpp"
#include "harness/mpi/partitioned.hpp"
#include "kernels/motifs/style.hpp"

namespace earlybird {

class PartitionedStyle : public Style {
 public:
  PartitionedStyle(Team &team, const Edges &edges)
      : Style(team, edges), duplicate_(team.comm()), sends_(edges.sends.size()), receives_(edges.receives.size()) {
    for (std::size_t k = 0; k < receives_.size(); ++k) {
      const Edge &edge = edges.receives[k];
      MPI_Precv_init(edge.data, edge.num_chunks(), edge.count, edge.type, edge.peer, edge.tag, duplicate_.comm(), MPI_INFO_NULL,
                     &receives_[k]);
    }
    for (std::size_t k = 0; k < sends_.size(); ++k) {
      const Edge &edge = edges.sends[k];
      MPI_Psend_init(edge.data, edge.num_chunks(), edge.count, edge.type, edge.peer, edge.tag, duplicate_.comm(), MPI_INFO_NULL,
                     &sends_[k]);
    }
  }
  ~PartitionedStyle() override {
    for (MPI_Request &request : receives_) MPI_Request_free(&request);
    for (MPI_Request &request : sends_) MPI_Request_free(&request);
  }

  bool threads_communicate() const override { return true; }
  void start_receives() override { start(receives_); }
  void start_sends() override { start(sends_); }
  void ready(int send, int chunk) override { MPI_Pready(chunk, sends_[static_cast<std::size_t>(send)]); }
  void wait_for(int receive, int chunk) override {
    int arrived = 0;
    while (true) {
      MPI_Parrived(receives_[static_cast<std::size_t>(receive)], chunk, &arrived);
      if (arrived) return;
      team_.pause();
    }
  }
  void finish_receives() override { finish(receives_); }
  void finish_sends() override { finish(sends_); }

  int num_partitions() const override {
    int count = 0;
    for (const Edge &edge : edges_.sends) count += edge.num_chunks();
    return count;
  }

 private:
  static void start(std::vector<MPI_Request> &requests) {
    if (!requests.empty()) MPI_Startall(static_cast<int>(requests.size()), requests.data());
  }

  // As Team::wait, with MPI_Test: MPI_Testall of MPICH 5.0.2 takes no partitioned requests.
  void finish(std::vector<MPI_Request> &requests) {
    if (!team_.oversubscribed()) {
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      return;
    }
    for (MPI_Request &request : requests) {
      int done = 0;
      while (true) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done) break;
        team_.pause();
      }
    }
  }

  const Duplicate duplicate_;
  std::vector<MPI_Request> sends_, receives_;
};

}  // namespace earlybird
