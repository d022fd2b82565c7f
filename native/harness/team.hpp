// The ranks of a launch working together: barrier, gathering, deciding. Never inside a timed region but for the barrier
// that opens it. MPI's error handler stays MPI_ERRORS_ARE_FATAL, so that no return code can be overlooked.
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

  // Whether some node has more threads of ranks than cores they may use; who waits then yields the core.
  bool oversubscribed() const { return oversubscribed_; }
  void set_oversubscribed(bool value) { oversubscribed_ = value; }

  // Whether all ranks are on one machine, under one name or several virtual ones, and so read the same clock.
  bool one_clock() const { return one_clock_; }
  void set_one_clock(bool value) { one_clock_ = value; }

  // Whether all ranks are on one host: messages between virtual nodes of one machine take a network all the same.
  bool one_host() const { return one_host_; }
  void set_one_host(bool value) { one_host_ = value; }

  // Dissemination barrier on point-to-point messages: results do not depend on the MPI's own barrier.
  void barrier();

  // Returns when all requests are complete. Where ranks outnumber cores it yields until they are.
  void wait(MPI_Request *requests, int count);

  // One value to rank `to`; it has left when this returns.
  void send(double value, int to);

  // The next value that rank `from` sends to this one.
  double receive(int from);

  // Rank 0 gets the values of every rank, rank after rank; `values` has the same length everywhere.
  std::vector<double> gather(const std::vector<double> &values);

  // Rank 0 gets one text per rank.
  std::vector<std::string> gather(const std::string &text);

  // Every rank gets rank 0's value.
  int broadcast(int value);
  double broadcast(double value);

  // Whether `value` is true on every rank; the answer reaches every rank.
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
