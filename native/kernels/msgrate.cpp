// Message rate: every thread of rank 0 sends windows of nonblocking messages to a thread of rank 1, as in the MPICH
// project's article on MPI_THREAD_MULTIPLE. The methods differ in the communicators that the threads use; `processes` is
// the same with pairs of single-threaded ranks: rank r sends to rank r + size/2. Of the lower thread levels, `funneled` has
// the messages of all threads sent and received by the main thread, `serialized` a lock around every call. With buffers=reuse the messages of a window,
// each in a place of its own, are the same in all windows.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/machine/clock.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

namespace {

// One tag for all threads, as in the article: on a shared communicator any thread may receive a message.
constexpr int tag = 23;
// Fifty windows of the article took 1 ms. If threads share cores, a region covers several scheduling periods.
constexpr double region_s = 1e-3, shared_cores_region_s = 20e-3;

struct Setting {
  std::size_t size_bytes;
  std::size_t window;
  int threads;  // number of message streams: threads of rank 0, or sending ranks
};

Setting setting_of(const Point &point) {
  const long long size_bytes = point.integer("size_bytes"), window = point.integer("window");
  if (size_bytes < 0 || window < 1)
    refuse("the request gives size_bytes=" + point.text("size_bytes") + " window=" + point.text("window") +
           "; give at least 0 bytes and windows of at least 1 message");
  return {static_cast<std::size_t>(size_bytes), static_cast<std::size_t>(window), static_cast<int>(point.integer("threads"))};
}

// Which threads call MPI, and how.
enum class Calls { concurrent, serialized, funneled };

// The communicator of each thread, and whether to free them.
class Communicators {
 public:
  static Communicators shared(const Team &team, int threads) {
    return Communicators(std::vector<MPI_Comm>(static_cast<std::size_t>(threads), team.comm()), false);
  }
  // In order, because MPICH assigns its contexts to communicators in the order of their creation.
  static Communicators own(const Team &team, int threads, bool with_contexts) {
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(threads));
    for (int thread = 0; thread < threads; ++thread) {
      MPI_Comm &comm = comms[static_cast<std::size_t>(thread)];
      MPI_Comm_dup(team.comm(), &comm);
      if (with_contexts) name_thread(comm, thread);
    }
    return Communicators(std::move(comms), true);
  }
  Communicators(Communicators &&other) noexcept : comms_(std::move(other.comms_)), owned_(other.owned_) { other.owned_ = false; }
  ~Communicators() {
    for (std::size_t k = 0; owned_ && k < comms_.size(); ++k) MPI_Comm_free(&comms_[k]);
  }
  Communicators(const Communicators &) = delete;
  Communicators &operator=(const Communicators &) = delete;

  MPI_Comm of(int thread) const { return comms_[static_cast<std::size_t>(thread)]; }

 private:
  Communicators(std::vector<MPI_Comm> comms, bool owned) : comms_(std::move(comms)), owned_(owned) {}

  // Assigns a communicator to a thread in Intel MPI's thread-split mode without OpenMP; other MPIs ignore this key.
  static void name_thread(MPI_Comm comm, int thread) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_id", std::to_string(thread).c_str());
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
  }

  std::vector<MPI_Comm> comms_;
  bool owned_;
};

// The messages of all threads of this rank for one method.
class Windows {
 public:
  Windows(Team &team, Crew &crew, const Setting &setting, Communicators comms, Calls calls)
      : team_(team),
        crew_(crew),
        setting_(setting),
        comms_(std::move(comms)),
        calls_(calls),
        times_s_(static_cast<std::size_t>(crew.size())) {
    for (int thread = 0; thread < crew.size(); ++thread)
      buffers_.push_back(std::make_unique<Buffer>(setting.size_bytes * setting.window));
  }

  // Every thread writes the data it will send, so that it is in the cache of its core.
  void write(int iteration) {
    if (!sends()) return;
    const std::function<void(int)> job = [&](int thread) {
      for (std::size_t k = 0; k < setting_.window; ++k) fill(message(thread, k), setting_.size_bytes, key(thread, k, iteration));
    };
    crew_.run(job, Crew::Then::stand_by);
  }

  void run(int count) {
    if (calls_ == Calls::funneled) {
      run_funneled(count);
      return;
    }
    const std::function<void(int)> job = [&](int thread) { run_thread(thread, count); };
    crew_.run(job, Crew::Then::stand_by);
  }

  // The time of each thread in the last `run`, from its own first message.
  const std::vector<double> &times_s() const { return times_s_; }

  // Sends and receives one window; returns whether each message arrived exactly once, at its own thread or, with `mixed`,
  // at any thread.
  bool deliver_once(int iteration, bool mixed) {
    for (int thread = 0; !sends() && thread < crew_.size(); ++thread)
      std::memset(message(thread, 0), 0xA5, setting_.size_bytes * setting_.window);
    write(iteration);
    team_.barrier();
    run(1);
    return sends() || (mixed ? hold_all(iteration) : hold_each(iteration));
  }

 private:
  bool sends() const { return team_.rank() < team_.size() / 2; }
  std::byte *message(int thread, std::size_t k) {
    return buffers_[static_cast<std::size_t>(thread)]->data() + k * setting_.size_bytes;
  }
  // The key of message k of a thread; the same at sender and receiver.
  std::uint64_t key(int thread, std::size_t k, int iteration) const {
    const int stream = team_.rank() % (team_.size() / 2) * crew_.size() + thread;
    return content_key(stream, static_cast<std::int64_t>(k), iteration);
  }

  void run_thread(int thread, int count) {
    // Local, because requests of two threads must not share a cache line.
    std::vector<MPI_Request> requests(setting_.window);
    const double begin_s = now_s();
    for (int number = 0; number < count; ++number)
      calls_ == Calls::serialized ? window_in_turn(thread, requests) : window(thread, requests);
    times_s_[static_cast<std::size_t>(thread)] = now_s() - begin_s;
  }

  // The main thread has the window of every thread in flight.
  void run_funneled(int count) {
    const auto threads = static_cast<std::size_t>(crew_.size());
    std::vector<MPI_Request> requests(threads * setting_.window);
    const double begin_s = now_s();
    for (int number = 0; number < count; ++number) {
      for (std::size_t thread = 0; thread < threads; ++thread) {
        for (std::size_t k = 0; k < setting_.window; ++k)
          start(static_cast<int>(thread), k, &requests[thread * setting_.window + k]);
      }
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }
    std::fill(times_s_.begin(), times_s_.end(), now_s() - begin_s);
  }

  void window(int thread, std::vector<MPI_Request> &requests) {
    for (std::size_t k = 0; k < setting_.window; ++k) start(thread, k, &requests[k]);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }

  // A thread that waited inside a call would keep the others from the calls that its messages wait for.
  void window_in_turn(int thread, std::vector<MPI_Request> &requests) {
    for (std::size_t k = 0; k < setting_.window; ++k) {
      const std::lock_guard<std::mutex> lock(mutex_);
      start(thread, k, &requests[k]);
    }
    for (int done = 0; !done; team_.pause()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    }
  }

  void start(int thread, std::size_t k, MPI_Request *request) {
    const int half = team_.size() / 2, size_bytes = static_cast<int>(setting_.size_bytes);
    const MPI_Comm comm = comms_.of(thread);
    if (sends()) MPI_Isend(message(thread, k), size_bytes, MPI_BYTE, team_.rank() + half, tag, comm, request);
    else MPI_Irecv(message(thread, k), size_bytes, MPI_BYTE, team_.rank() - half, tag, comm, request);
  }

  bool hold_each(int iteration) {
    for (int thread = 0; thread < crew_.size(); ++thread) {
      for (std::size_t k = 0; k < setting_.window; ++k) {
        if (!holds(message(thread, k), setting_.size_bytes, key(thread, k, iteration))) return false;
      }
    }
    return true;
  }

  bool hold_all(int iteration) {
    std::vector<std::string> sent, received;
    for (int thread = 0; thread < crew_.size(); ++thread) {
      for (std::size_t k = 0; k < setting_.window; ++k) {
        sent.emplace_back(setting_.size_bytes, '\0');
        fill(reinterpret_cast<std::byte *>(sent.back().data()), setting_.size_bytes, key(thread, k, iteration));
        received.emplace_back(reinterpret_cast<const char *>(message(thread, k)), setting_.size_bytes);
      }
    }
    std::sort(sent.begin(), sent.end());
    std::sort(received.begin(), received.end());
    return sent == received;
  }

  Team &team_;
  Crew &crew_;
  const Setting setting_;
  const Communicators comms_;
  const Calls calls_;
  std::mutex mutex_;  // of `serialized`
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<double> times_s_;
};

bool is_only(const Request &request, const std::string &method) { return request.methods == std::vector<std::string>{method}; }
bool of_processes(const Request &request) { return is_only(request, "processes"); }

Calls calls_of(const std::string &method) {
  return method == "funneled" ? Calls::funneled : method == "serialized" ? Calls::serialized : Calls::concurrent;
}

bool is_shared(const std::string &method) {
  return method == "shared" || method == "processes" || calls_of(method) != Calls::concurrent;
}

Communicators communicators_of(const std::string &method, const Task &task) {
  if (is_shared(method)) return Communicators::shared(task.team, task.crew.size());
  if (method == "per-thread") return Communicators::own(task.team, task.crew.size(), false);
  if (method == "per-thread-contexts") return Communicators::own(task.team, task.crew.size(), true);
  refuse("msgrate has no method " + method);
}

void require_pairs(const Team &team) {
  if (team.size() % 2 != 0) refuse("msgrate needs an even number of ranks");
}

// The `threads` of a sample must be the number of senders.
void require_threads(const Task &task, const Setting &setting) {
  const bool processes = of_processes(task.request);
  if (!processes && task.team.size() != 2)
    refuse("msgrate needs exactly 2 ranks, except for the method processes, which is measured separately");
  const int sending = processes ? task.team.size() / 2 * task.crew.size() : task.crew.size();
  if (setting.threads != sending || (processes && task.crew.size() > 1))
    refuse("the request gives threads=" + task.point.text("threads") + " and the launch has " + std::to_string(sending) +
           (processes ? " single-threaded sending ranks" : " sending threads"));
  for (const std::string &method : task.request.methods) {
    if (calls_of(method) != Calls::concurrent && !is_only(task.request, method))
      refuse("msgrate measures the method " + method + " in launches of its own thread level; omit the other methods");
  }
}

void measure(const Task &task) {
  const Setting setting = setting_of(task.point);
  require_threads(task, setting);
  if (task.request.methods.empty()) refuse("msgrate needs methods, such as shared, per-thread");
  const bool vary = varies_contents(task.point);
  const double at_least_s = task.team.oversubscribed() ? shared_cores_region_s : region_s;

  std::vector<std::unique_ptr<Windows>> all;
  std::vector<Operation> operations;
  for (const std::string &method : task.request.methods) {
    all.push_back(std::make_unique<Windows>(task.team, task.crew, setting, communicators_of(method, task), calls_of(method)));
    Windows &windows = *all.back();
    Operation operation;
    operation.method = method;
    operation.batch = task.sampler.choose_batch([&](int batch) { windows.run(batch); }, at_least_s);
    if (!vary) windows.write(0);  // what is then sent again and again
    operation.prepare = [&windows, vary](int iteration) {
      if (vary) windows.write(iteration);
    };
    operation.run = [&windows, batch = operation.batch] { windows.run(batch); };
    operation.thread_times_s = [&windows]() -> const std::vector<double> & { return windows.times_s(); };
    operation.reduction = Reduction::slowest_from_first;
    operations.push_back(operation);
  }

  const std::vector<Series> series = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const bool delivered = all[k]->deliver_once(task.sampler.last_iteration() + 1,
                                                operations[k].method != "processes" && is_shared(operations[k].method));
    task.sampler.write("msgrate", "time_per_window", task.point, series[k], operations[k], delivered);
  }
  task.crew.run([](int) {});  // ends the spinning of idle threads
}

// The cost of each level is also measured with one thread.
int thread_level(const Request &request) {
  if (of_processes(request)) return MPI_THREAD_SINGLE;
  if (is_only(request, "funneled")) return MPI_THREAD_FUNNELED;
  return is_only(request, "serialized") ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE;
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, require_pairs, measure, thread_level); }
