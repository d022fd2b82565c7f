// Communication between the ranks of a launch: barrier, gather, broadcast. Not used inside a timed region, except for the
// barrier before it. The error handler stays MPI_ERRORS_ARE_FATAL, so that return codes need not be checked.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace earlybird {

class Team {
 public:
  explicit Team(MPI_Comm comm);

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm comm() const { return comm_; }

  // Whether a node has more threads than cores that its ranks may use; waiting ranks then yield the core.
  bool oversubscribed() const { return oversubscribed_; }
  void set_oversubscribed(bool value) { oversubscribed_ = value; }

  // Whether all ranks read the same clock: they are on one machine, with one host name or several virtual ones.
  bool one_clock() const { return one_clock_; }
  void set_one_clock(bool value) { one_clock_ = value; }

  // Whether all ranks are on one host; messages between virtual nodes of one machine still use a network.
  bool one_host() const { return one_host_; }
  void set_one_host(bool value) { one_host_ = value; }

  // Dissemination barrier with point-to-point messages, so that results do not depend on MPI_Barrier.
  void barrier();

  // Yields the core if there are more threads than cores: for loops that wait for other ranks.
  void pause() const;

  // Returns when all requests are complete; pauses while waiting.
  void wait(MPI_Request *requests, int count);

  // Sends one value to rank `to`; returns when the send is complete.
  void send(double value, int to);

  // The next value that rank `from` sends to this rank.
  double receive(int from);

  // Rank 0 gets the values of all ranks in rank order; `values` has the same length on every rank.
  std::vector<double> gather(const std::vector<double> &values);

  // Rank 0 gets one text per rank.
  std::vector<std::string> gather(const std::string &text);

  // Every rank gets rank 0's value.
  int broadcast(int value);
  double broadcast(double value);

  // Whether `value` is true on every rank; every rank gets the result.
  bool all(bool value);

 private:
  MPI_Comm comm_;
  int rank_;
  int size_;
  bool oversubscribed_ = false;
  bool one_clock_ = false;
  bool one_host_ = false;
};

}  // namespace earlybird
