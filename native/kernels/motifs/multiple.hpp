// Style `multiple`: each thread sends and receives the chunks that it owns as messages, with MPI_THREAD_MULTIPLE.
#pragma once

#include <memory>
#include <vector>

#include "harness/mpi/duplicate.hpp"
#include "kernels/motifs/style.hpp"

namespace earlybird {

// Each sending thread has its own communicator, so that an MPI with several contexts can separate the threads.
class Multiple : public Style {
 public:
  Multiple(Team &team, const Edges &edges, int num_threads)
      : Style(team, edges), sends_(edges.sends, num_threads), receives_(edges.receives, num_threads) {
    for (int thread = 0; thread < num_threads; ++thread) lanes_.push_back(std::make_unique<Duplicate>(team.comm()));
  }

  bool threads_communicate() const override { return true; }

  void start_receives_of(int thread) override {
    for (const auto &[k, chunk] : receives_.owned[static_cast<std::size_t>(thread)]) {
      const Edge &edge = edges_.receives[static_cast<std::size_t>(k)];
      MPI_Irecv(edge.chunk(chunk), edge.count, edge.type, edge.peer, tag_of(edge, chunk), comm_of(edge, chunk),
                &receives_.request(k, chunk));
    }
  }
  void ready(int send, int chunk) override {
    const Edge &edge = edges_.sends[static_cast<std::size_t>(send)];
    MPI_Isend(edge.chunk(chunk), edge.count, edge.type, edge.peer, tag_of(edge, chunk), comm_of(edge, chunk),
              &sends_.request(send, chunk));
  }
  void wait_for(int receive, int chunk) override { team_.wait(&receives_.request(receive, chunk), 1); }
  void finish_sends_of(int thread) override {
    std::vector<MPI_Request> &requests = sends_.by_thread[static_cast<std::size_t>(thread)];
    team_.wait(requests.data(), static_cast<int>(requests.size()));
  }

  int num_messages() const override {
    int count = 0;
    for (const Edge &edge : edges_.sends) count += edge.num_chunks();
    return count;
  }

 private:
  struct Owned {
    int edge, chunk;
  };

  // A request for each chunk of one direction; those of a thread are consecutive, and on cache lines of its own.
  struct Requests {
    Requests(const std::vector<Edge> &edges, int num_threads)
        : owned(static_cast<std::size_t>(num_threads)), by_thread(owned.size()), edges_(edges) {
      for (const Edge &edge : edges) {
        std::vector<std::size_t> &places = places_.emplace_back();
        for (int chunk = 0; chunk < edge.num_chunks(); ++chunk) {
          std::vector<Owned> &of_thread = owned[owner(edge, chunk)];
          places.push_back(of_thread.size());
          of_thread.push_back({static_cast<int>(places_.size()) - 1, chunk});
        }
      }
      for (std::size_t thread = 0; thread < owned.size(); ++thread)
        by_thread[thread].assign(owned[thread].size(), MPI_REQUEST_NULL);
    }

    MPI_Request &request(int edge, int chunk) {
      const auto k = static_cast<std::size_t>(edge);
      return by_thread[owner(edges_[k], chunk)][places_[k][static_cast<std::size_t>(chunk)]];
    }

    std::vector<std::vector<Owned>> owned;
    std::vector<std::vector<MPI_Request>> by_thread;

   private:
    static std::size_t owner(const Edge &edge, int chunk) {
      return static_cast<std::size_t>(edge.owners[static_cast<std::size_t>(chunk)]);
    }

    const std::vector<Edge> &edges_;
    std::vector<std::vector<std::size_t>> places_;  // of each chunk of each edge among those of its owner
  };

  // The edges between two ranks may have different numbers of chunks.
  static int tag_of(const Edge &edge, int chunk) { return edge.tag * most_chunks + chunk; }
  MPI_Comm comm_of(const Edge &edge, int chunk) const {
    return lanes_[static_cast<std::size_t>(edge.lanes[static_cast<std::size_t>(chunk)])]->comm();
  }

  std::vector<std::unique_ptr<Duplicate>> lanes_;
  Requests sends_, receives_;
};

}  // namespace earlybird
