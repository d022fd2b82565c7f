// Completes nonblocking operations in a loop that can yield. With more ranks than cores, a spinning wait would block the
// rank it waits for (8 ms for one MPI_Barrier of MPICH 5.0.2 with 4 ranks on 2 cores, 8 us with this loop).
#include "harness/team/team.hpp"

#include <sched.h>

#include "harness/machine/clock.hpp"

namespace earlybird {

namespace {
constexpr int barrier_tag = 1;
constexpr int value_tag = 2;
constexpr double simulated_pause_s = 10e-3;  // longer than a broadcast
}  // namespace

Team::Team(MPI_Comm comm) {
  MPI_Comm_dup(comm, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

void Team::pause() const {
  if (oversubscribed_) sched_yield();
}

void Team::wait(MPI_Request *requests, int count) {
  if (!oversubscribed_) {
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    return;
  }
  int done = 0;
  while (true) {
    MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
    if (done) return;
    pause();
  }
}

void Team::barrier() {
  for (int distance = 1; distance < size_; distance *= 2) {
    MPI_Request requests[2];
    MPI_Irecv(nullptr, 0, MPI_BYTE, (rank_ - distance + size_) % size_, barrier_tag, comm_, &requests[0]);
    MPI_Isend(nullptr, 0, MPI_BYTE, (rank_ + distance) % size_, barrier_tag, comm_, &requests[1]);
    wait(requests, 2);
  }
  // Simulated ranks read one clock and leave at the same time. Otherwise the order of earlier operations would decide which
  // rank starts first, and exact times would differ by that.
  if (clock_is_global()) sleep_until(broadcast(now_s()) + simulated_pause_s);
}

void Team::send(double value, int to) {
  MPI_Request request;
  MPI_Isend(&value, 1, MPI_DOUBLE, to, value_tag, comm_, &request);
  wait(&request, 1);
}

double Team::receive(int from) {
  double value;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_DOUBLE, from, value_tag, comm_, &request);
  wait(&request, 1);
  return value;
}

std::vector<double> Team::gather(const std::vector<double> &values) {
  const int count = static_cast<int>(values.size());
  std::vector<double> all(rank_ == 0 ? values.size() * static_cast<std::size_t>(size_) : 0);
  MPI_Request request;
  MPI_Igather(values.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, comm_, &request);
  wait(&request, 1);
  return all;
}

std::vector<std::string> Team::gather(const std::string &text) {
  const int length = static_cast<int>(text.size());
  std::vector<int> lengths(static_cast<std::size_t>(size_)), offsets(static_cast<std::size_t>(size_));
  MPI_Request request;
  MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm_, &request);
  wait(&request, 1);
  int total = 0;
  for (int r = 0; r < size_; ++r) {
    offsets[static_cast<std::size_t>(r)] = total;
    total += rank_ == 0 ? lengths[static_cast<std::size_t>(r)] : 0;
  }
  std::string joined(static_cast<std::size_t>(total), '\0');
  MPI_Igatherv(text.data(), length, MPI_CHAR, joined.data(), lengths.data(), offsets.data(), MPI_CHAR, 0, comm_, &request);
  wait(&request, 1);
  std::vector<std::string> texts;
  for (int r = 0; rank_ == 0 && r < size_; ++r) {
    const auto k = static_cast<std::size_t>(r);
    texts.push_back(joined.substr(static_cast<std::size_t>(offsets[k]), static_cast<std::size_t>(lengths[k])));
  }
  return texts;
}

int Team::broadcast(int value) {
  MPI_Request request;
  MPI_Ibcast(&value, 1, MPI_INT, 0, comm_, &request);
  wait(&request, 1);
  return value;
}

double Team::broadcast(double value) {
  MPI_Request request;
  MPI_Ibcast(&value, 1, MPI_DOUBLE, 0, comm_, &request);
  wait(&request, 1);
  return value;
}

bool Team::all(bool value) {
  int local = value, result = 0;
  MPI_Request request;
  // Not MPI_Iallreduce: in SMPI 3.32 each rank sends to every other, which takes minutes to simulate with 256 ranks.
  MPI_Ireduce(&local, &result, 1, MPI_INT, MPI_LAND, 0, comm_, &request);
  wait(&request, 1);
  return broadcast(result) != 0;
}

}  // namespace earlybird
