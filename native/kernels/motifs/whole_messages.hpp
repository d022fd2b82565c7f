// Styles `funnelled` and `persistent`: the main thread sends one message per neighbour when all threads have joined.
#pragma once

#include <vector>

#include "harness/mpi/duplicate.hpp"
#include "kernels/motifs/style.hpp"

namespace earlybird {

// What both have in common: when the main thread waits.
class WholeMessages : public Style {
 public:
  WholeMessages(Team &team, const Edges &edges)
      : Style(team, edges),
        duplicate_(team.comm()),
        sends_(edges.sends.size(), MPI_REQUEST_NULL),
        receives_(edges.receives.size(), MPI_REQUEST_NULL) {}

  bool threads_communicate() const override { return false; }
  void await_receives() override { team_.wait(receives_.data(), static_cast<int>(receives_.size())); }
  void finish_sends() override { team_.wait(sends_.data(), static_cast<int>(sends_.size())); }

 protected:
  const Duplicate duplicate_;
  std::vector<MPI_Request> sends_, receives_;
};

class Funnelled : public WholeMessages {
 public:
  using WholeMessages::WholeMessages;

  void start_receives() override {
    for (std::size_t k = 0; k < receives_.size(); ++k) {
      const Edge &edge = edges_.receives[k];
      MPI_Irecv(edge.data, edge.total_count(), edge.type, edge.peer, edge.tag, duplicate_.comm(), &receives_[k]);
    }
  }
  void all_ready() override {
    for (std::size_t k = 0; k < sends_.size(); ++k) {
      const Edge &edge = edges_.sends[k];
      MPI_Isend(edge.data, edge.total_count(), edge.type, edge.peer, edge.tag, duplicate_.comm(), &sends_[k]);
    }
  }
};

class Persistent : public WholeMessages {
 public:
  Persistent(Team &team, const Edges &edges) : WholeMessages(team, edges) {
    for (std::size_t k = 0; k < receives_.size(); ++k) {
      const Edge &edge = edges.receives[k];
      MPI_Recv_init(edge.data, edge.total_count(), edge.type, edge.peer, edge.tag, duplicate_.comm(), &receives_[k]);
    }
    for (std::size_t k = 0; k < sends_.size(); ++k) {
      const Edge &edge = edges.sends[k];
      MPI_Send_init(edge.data, edge.total_count(), edge.type, edge.peer, edge.tag, duplicate_.comm(), &sends_[k]);
    }
  }
  ~Persistent() override {
    for (MPI_Request &request : receives_) MPI_Request_free(&request);
    for (MPI_Request &request : sends_) MPI_Request_free(&request);
  }

  void start_receives() override { start(receives_); }
  void all_ready() override { start(sends_); }

 private:
  static void start(std::vector<MPI_Request> &requests) {
    if (!requests.empty()) MPI_Startall(static_cast<int>(requests.size()), requests.data());
  }
};

}  // namespace earlybird
