// Calls: what single calls around partitioned communication cost. `pready`: MPI_Pready of partitions that share one
// segment, from one or more threads. `segments`: the same where every partition is a message of its own. `test_null`:
// MPI_Test of no request. `testall`: MPI_Testall of requests that are not partitioned while some that are exist.
#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/clock.hpp"
#include "harness/kernel_main.hpp"
#include "harness/partitioned.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 23;
// Of requests that are never matched: a freed one keeps its place in the order of its tag (MPI 4.1 section 4.2).
constexpr int lonely_tag = 24;
// An info value is followed from the first plan on, and plans are made at the starts 2, 8 and 32.
constexpr int starts_until_settled = 40;
// How long a sender waits for its receiver to fall asleep.
constexpr double falling_asleep_s = 50e-6;
// How long a receiver sleeps that leaves its core to the sender's threads.
constexpr double asleep_s = 400e-6;

int whole(const Point &point, const std::string &key, int least, int most) {
  const long long value = point.integer(key);
  if (value < least || value > most)
    refuse("the plan gives " + key + "=" + point.text(key) + "; give " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<int>(value);
}

// Seconds from when all workers are there until the last of them has done job(worker). All threads of a crew take part,
// those beyond `workers` with nothing to do.
class Race {
 public:
  Race(Crew &crew, int workers, const std::function<void(int)> &job)
      : crew_(crew), workers_(workers), job_(job), laps_(static_cast<std::size_t>(workers)) {}

  double run() {
    std::atomic<int> missing{workers_};
    const std::function<void(int)> part = [&](int thread) {
      if (thread >= workers_) return;
      Lap &lap = laps_[static_cast<std::size_t>(thread)];
      missing.fetch_sub(1);
      while (missing.load() > 0) continue;
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

int workers_of(const Task &task) { return whole(task.point, "workers", 1, task.crew.size()); }

// Worker w makes its share of the partitions ready, but for the last partition of all.
std::function<void(int)> readying(int partitions, int workers, const MPI_Request &request) {
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

// Of one process to itself: whose data it is does not matter to the call, and a peer would need a core.
std::vector<double> pready(const Task &task) {
  need_partitioned(true, "the call pready");
  const int partitions = whole(task.point, "partitions", 2, 1 << 20), workers = workers_of(task);
  const int iterations = whole(task.point, "iterations", 1, 1 << 20);
  constexpr int partition_bytes = 4;
  Buffer out(static_cast<std::size_t>(partitions) * partition_bytes), in(static_cast<std::size_t>(partitions) * partition_bytes);
  MPI_Request requests[2];
  MPI_Info info = segments_info("1");
  const int self = task.team.rank();
  MPI_Precv_init(in.data(), partitions, partition_bytes, MPI_BYTE, self, tag, task.team.comm(), MPI_INFO_NULL, &requests[0]);
  MPI_Psend_init(out.data(), partitions, partition_bytes, MPI_BYTE, self, tag, task.team.comm(), info, &requests[1]);
  MPI_Info_free(&info);
  Race race(task.crew, workers, readying(partitions, workers, requests[1]));
  std::vector<double> times_s;
  for (int k = 0; k < starts_until_settled + iterations; ++k) {
    MPI_Startall(2, requests);
    const double time_s = race.run();
    MPI_Pready(partitions - 1, requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (k >= starts_until_settled) times_s.push_back(time_s / (partitions / workers));
  }
  for (MPI_Request &request : requests) MPI_Request_free(&request);
  return times_s;
}

// Time per message until the last is sent. The receiver sleeps, so that two cores are enough for two sending threads.
std::vector<double> segments(const Task &task) {
  need_partitioned(true, "the call segments");
  if (task.team.size() != 2) refuse("the call segments needs exactly 2 ranks");
  const int partitions = whole(task.point, "partitions", 2, 1 << 20), workers = workers_of(task);
  const int iterations = whole(task.point, "iterations", 1, 1 << 20);
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
  Race race(task.crew, workers, readying(partitions, workers, request));
  std::vector<double> times_s;
  for (int k = 0; k < starts_until_settled + iterations; ++k) {
    MPI_Start(&request);
    task.team.barrier();
    if (sends) {
      sleep_until(now_s() + falling_asleep_s);
      const double time_s = race.run();
      MPI_Pready(partitions - 1, request);
      if (k >= starts_until_settled) times_s.push_back(time_s / (partitions - 1));
    } else {
      sleep_until(now_s() + asleep_s);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Request_free(&request);
  return times_s;
}

std::vector<double> test_null(const Task &task) {
  const int count = whole(task.point, "count", 1, 1 << 30), iterations = whole(task.point, "iterations", 1, 1 << 20);
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

// Time per request of MPI_Testall over `requests` inactive receives, with `live` partitioned requests beside them.
std::vector<double> testall(const Task &task) {
  const int num = whole(task.point, "requests", 1, 1 << 16), num_live = whole(task.point, "live", 0, 1 << 16);
  const int count = whole(task.point, "count", 1, 1 << 30), iterations = whole(task.point, "iterations", 1, 1 << 20);
  if (num_live > 0) need_partitioned(true, "the call testall with live=" + std::to_string(num_live));
  const int self = task.team.rank();
  char byte = 0;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(num)), live(static_cast<std::size_t>(num_live));
  for (MPI_Request &request : requests) MPI_Recv_init(&byte, 1, MPI_BYTE, self, tag, task.team.comm(), &request);
  for (MPI_Request &request : live)
    MPI_Precv_init(&byte, 1, 1, MPI_BYTE, self, lonely_tag, task.team.comm(), MPI_INFO_NULL, &request);
  std::vector<double> times_s;
  for (int k = 0; k < iterations; ++k) {
    const double begin_s = now_s();
    for (int c = 0; c < count; ++c) {
      int flag;
      MPI_Testall(num, requests.data(), &flag, MPI_STATUSES_IGNORE);
    }
    times_s.push_back((now_s() - begin_s) / count / num);
  }
  for (MPI_Request &request : requests) MPI_Request_free(&request);
  for (MPI_Request &request : live) MPI_Request_free(&request);
  return times_s;
}

const std::map<std::string, std::vector<double> (*)(const Task &)> known_calls = {
    {"pready", pready}, {"segments", segments}, {"test_null", test_null}, {"testall", testall}};

void measure(const Task &task) {
  const std::string name = task.point.text("call");
  const auto found = known_calls.find(name);
  if (found == known_calls.end()) refuse("calls knows no call " + name);
  Series series;
  series.times_s = found->second(task);
  task.crew.run([](int) {});  // those that stand by may rest
  series.warmup = warmup_count(series.times_s);
  series.converged = stop_median(series.times_s, task.line.rules.target, 1);
  task.sampler.write("calls", "time_per_call", task.point, series, Operation{}, true);
}

}  // namespace

int main(int argc, char **argv) {
  return kernel_main(argc, argv, [](const Team &) {}, measure);
}
