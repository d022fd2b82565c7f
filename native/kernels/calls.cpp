// Calls: the cost of single calls related to partitioned communication. `pready`: MPI_Pready of partitions of one segment,
// from one or more threads. `segments`: the same with one message per partition. `test_null`: MPI_Test of
// MPI_REQUEST_NULL. `testall`: MPI_Testall of other requests while partitioned requests exist.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/machine/clock.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/mpi/partitioned.hpp"
#include "harness/sampling/stop_rule.hpp"
#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 23;
// For requests that are never matched: a freed request keeps its position in the matching order of its tag (MPI 4.1
// section 4.2).
constexpr int unmatched_tag = 24;
// Info values take effect with the first plan; plans are made at starts 2, 8 and 32.
constexpr int starts_until_settled = 40;
// The sender waits this long for its receiver to go to sleep.
constexpr double receiver_settle_s = 50e-6;
// The receiver sleeps this long to leave its core to the sender's threads.
constexpr double receiver_sleep_s = 400e-6;

// Measures the seconds from when all workers are ready until the last one has returned from job(worker). Threads of the
// crew beyond `workers` do nothing.
class ParallelTimer {
 public:
  ParallelTimer(Crew &crew, int workers, const std::function<void(int)> &job)
      : crew_(crew), workers_(workers), job_(job), laps_(static_cast<std::size_t>(workers)) {}

  double run() {
    std::atomic<int> num_missing{workers_};
    const std::function<void(int)> part = [&](int thread) {
      if (thread >= workers_) return;
      Lap &lap = laps_[static_cast<std::size_t>(thread)];
      num_missing.fetch_sub(1);
      while (num_missing.load() > 0) continue;
      lap.begin_s = now_s();
      job_(thread);
      lap.end_s = now_s();
    };
    crew_.run(part, Crew::Then::stand_by);
    const auto begins = [](const Lap &a, const Lap &b) { return a.begin_s < b.begin_s; };
    const auto ends = [](const Lap &a, const Lap &b) { return a.end_s < b.end_s; };
    return std::max_element(laps_.begin(), laps_.end(), ends)->end_s -
           std::min_element(laps_.begin(), laps_.end(), begins)->begin_s;
  }

 private:
  struct alignas(64) Lap {
    double begin_s = 0, end_s = 0;
  };

  Crew &crew_;
  const int workers_;
  const std::function<void(int)> job_;
  std::vector<Lap> laps_;
};

int num_workers(const Task &task) { return task.point.integer("workers", 1, task.crew.size()); }

// Worker w marks its share of the partitions as ready, except the last partition.
std::function<void(int)> mark_ready_job(int partitions, int workers, const MPI_Request &request) {
  return [=, &request](int worker) {
    const int last = std::min(partitions * (worker + 1) / workers, partitions - 1);
    for (int k = partitions * worker / workers; k < last; ++k) MPI_Pready(k, request);
  };
}

MPI_Info segments_info(const char *segments) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, EARLYBIRD_INFO_SEGMENTS, segments);
  return info;
}

// A process sends to itself: the destination does not matter for the call, and a peer would need a core.
std::vector<double> pready(const Task &task) {
  require_partitioned(true, "the call pready");
  const int partitions = task.point.integer("partitions", 2, 1 << 20), workers = num_workers(task);
  const int iterations = task.point.integer("iterations", 1, 1 << 20);
  constexpr int partition_bytes = 4;
  Buffer out(static_cast<std::size_t>(partitions) * partition_bytes), in(static_cast<std::size_t>(partitions) * partition_bytes);
  MPI_Request requests[2];
  MPI_Info info = segments_info("1");
  const int self = task.team.rank();
  MPI_Precv_init(in.data(), partitions, partition_bytes, MPI_BYTE, self, tag, task.team.comm(), MPI_INFO_NULL, &requests[0]);
  MPI_Psend_init(out.data(), partitions, partition_bytes, MPI_BYTE, self, tag, task.team.comm(), info, &requests[1]);
  MPI_Info_free(&info);
  ParallelTimer timer(task.crew, workers, mark_ready_job(partitions, workers, requests[1]));
  std::vector<double> times_s;
  const int calls_per_worker = partitions / workers;
  for (int k = 0; k < starts_until_settled + iterations; ++k) {
    MPI_Startall(2, requests);
    const double time_s = timer.run();
    MPI_Pready(partitions - 1, requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (k >= starts_until_settled) times_s.push_back(time_s / calls_per_worker);
  }
  for (MPI_Request &request : requests) MPI_Request_free(&request);
  return times_s;
}

// Time per message until the last one is sent. The receiver sleeps, so that two cores suffice for two sending threads.
std::vector<double> segments(const Task &task) {
  require_partitioned(true, "the call segments");
  if (task.team.size() != 2) refuse("the call segments needs exactly 2 ranks");
  const int partitions = task.point.integer("partitions", 2, 1 << 20), workers = num_workers(task);
  const int iterations = task.point.integer("iterations", 1, 1 << 20);
  constexpr int partition_bytes = 64;
  const bool sends = task.team.rank() == 0;
  Buffer buffer(static_cast<std::size_t>(partitions) * partition_bytes);
  MPI_Request request;
  if (sends) {
    MPI_Info info = segments_info("partition");
    MPI_Psend_init(buffer.data(), partitions, partition_bytes, MPI_BYTE, 1, tag, task.team.comm(), info, &request);
    MPI_Info_free(&info);
  } else {
    MPI_Precv_init(buffer.data(), partitions, partition_bytes, MPI_BYTE, 0, tag, task.team.comm(), MPI_INFO_NULL, &request);
  }
  ParallelTimer timer(task.crew, workers, mark_ready_job(partitions, workers, request));
  std::vector<double> times_s;
  for (int k = 0; k < starts_until_settled + iterations; ++k) {
    MPI_Start(&request);
    task.team.barrier();
    if (sends) {
      sleep_until(now_s() + receiver_settle_s);
      const double time_s = timer.run();
      MPI_Pready(partitions - 1, request);
      if (k >= starts_until_settled) times_s.push_back(time_s / (partitions - 1));
    } else {
      sleep_until(now_s() + receiver_sleep_s);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  return times_s;
}

std::vector<double> test_null(const Task &task) {
  const int count = task.point.integer("count", 1, 1 << 30);
  const int iterations = task.point.integer("iterations", 1, 1 << 20);
  std::vector<double> times_s;
  for (int k = 0; k < iterations; ++k) {
    const double begin_s = now_s();
    for (int c = 0; c < count; ++c) {
      MPI_Request request = MPI_REQUEST_NULL;
      int flag;
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    times_s.push_back((now_s() - begin_s) / count);
  }
  return times_s;
}

// Time per request of MPI_Testall over `requests` inactive receives while `live` partitioned requests exist.
std::vector<double> testall(const Task &task) {
  const int num_requests = task.point.integer("requests", 1, 1 << 16);
  const int num_live = task.point.integer("live", 0, 1 << 16);
  const int count = task.point.integer("count", 1, 1 << 30);
  const int iterations = task.point.integer("iterations", 1, 1 << 20);
  if (num_live > 0) require_partitioned(true, "the call testall with live=" + std::to_string(num_live));
  const int self = task.team.rank();
  char byte = 0;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(num_requests)), live(static_cast<std::size_t>(num_live));
  for (MPI_Request &request : requests) MPI_Recv_init(&byte, 1, MPI_BYTE, self, tag, task.team.comm(), &request);
  for (MPI_Request &request : live)
    MPI_Precv_init(&byte, 1, 1, MPI_BYTE, self, unmatched_tag, task.team.comm(), MPI_INFO_NULL, &request);
  std::vector<double> times_s;
  for (int k = 0; k < iterations; ++k) {
    const double begin_s = now_s();
    for (int c = 0; c < count; ++c) {
      int flag;
      MPI_Testall(num_requests, requests.data(), &flag, MPI_STATUSES_IGNORE);
    }
    times_s.push_back((now_s() - begin_s) / count / num_requests);
  }
  for (MPI_Request &request : requests) MPI_Request_free(&request);
  for (MPI_Request &request : live) MPI_Request_free(&request);
  return times_s;
}

const std::map<std::string, std::vector<double> (*)(const Task &)> known_calls = {
    {"pready", pready}, {"segments", segments}, {"test_null", test_null}, {"testall", testall}};

void measure(const Task &task) {
  const std::string name = task.point.text("call");
  const auto entry = known_calls.find(name);
  if (entry == known_calls.end()) refuse("calls has no call " + name + "; give one of " + names_of(known_calls));
  Series series;
  series.times_s = entry->second(task);
  task.crew.run([](int) {});  // ends the spinning of idle threads
  series.warmup = warmup_count(series.times_s);
  series.converged = stop_median(series.times_s, task.request.rules.target, 1);
  task.sampler.write("calls", "time_per_call", task.point, series, Operation{}, true);
}

}  // namespace

int main(int argc, char **argv) {
  return kernel_main(argc, argv, [](const Team &) {}, measure);
}
