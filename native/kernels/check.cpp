// Check: compares nodes and the links between them. Every rank is on a node of its own. The request selects a part for each
// point: the pairs of one round of a tournament, an incast or an outcast of one node, or the nodes themselves.
//
// Links: half the round trip of a small message, the time of a message to the other node and back to its acknowledgement,
// and the time of two messages in both directions at once. Nodes: the time of a computation on every core, clocks, and facts.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "harness/clocks/clock_sync.hpp"
#include "harness/kernel_main.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/text/json.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/nodes/tournament.hpp"
#ifndef EB_SIMULATED
#include "kernels/nodes/core_speed.hpp"
#include "kernels/nodes/facts.hpp"
#include "kernels/nodes/heartbeat.hpp"
#endif

using namespace earlybird;

namespace {

constexpr int small_tag = 17, large_tag = 18, acknowledgement_tag = 19;
constexpr std::size_t small_bytes = 8;

#ifndef EB_SIMULATED
std::unique_ptr<Heartbeat> heartbeat;

void enter(Stage stage, int partner = -1) {
  if (heartbeat) heartbeat->at(stage, partner);
}
#else
enum class Stage { waiting_for_all, small_messages, large_messages, many_messages, describing };
void enter(Stage, int = -1) {}
#endif

// Point-to-point calls of one rank that wait as the team does.
class Port {
 public:
  explicit Port(Team &team) : team_(team) {}

  void send(const Buffer &buffer, std::size_t size_bytes, int to, int tag) {
    MPI_Request request = start_send(buffer, size_bytes, to, tag);
    team_.wait(&request, 1);
  }

  void receive(Buffer &buffer, std::size_t size_bytes, int from, int tag) {
    MPI_Request request = start_receive(buffer.data(), size_bytes, from, tag);
    team_.wait(&request, 1);
  }

  MPI_Request start_send(const Buffer &buffer, std::size_t size_bytes, int to, int tag) {
    MPI_Request request;
    MPI_Isend(buffer.data(), static_cast<int>(size_bytes), MPI_BYTE, to, tag, team_.comm(), &request);
    return request;
  }

  MPI_Request start_receive(std::byte *data, std::size_t size_bytes, int from, int tag) {
    MPI_Request request;
    MPI_Irecv(data, static_cast<int>(size_bytes), MPI_BYTE, from, tag, team_.comm(), &request);
    return request;
  }

  void wait(std::vector<MPI_Request> &requests) { team_.wait(requests.data(), static_cast<int>(requests.size())); }

 private:
  Team &team_;
};

#ifndef EB_SIMULATED
// The TCP segments that each rank's node has sent since the construction, and those of them that it had to send again.
class SegmentCount {
 public:
  explicit SegmentCount(Team &team) : team_(team), before_(count_segments()) {}

  void add_to(Operation &operation) {
    const Segments now = count_segments();
    const std::vector<double> own = {now.sent - before_.sent, now.sent_again - before_.sent_again};
    const std::vector<double> all = team_.gather(own);
    operation.extra_members.emplace_back("segments", json_rows(all, 2));
  }

 private:
  Team &team_;
  const Segments before_;
};
#else
class SegmentCount {
 public:
  explicit SegmentCount(Team &) {}
  void add_to(Operation &) {}
};
#endif

// The messages of one rank in a round of the tournament.
class Pair {
 public:
  Pair(Team &team, int partner, std::size_t size_bytes, int batch)
      : port_(team),
        rank_(team.rank()),
        partner_(partner),
        size_bytes_(size_bytes),
        batch_(batch),
        out_(size_bytes),
        in_(size_bytes),
        times_s_(3) {}

  // Half a round trip, a message of this rank alone, and the message to this rank while it sends one: zeros without partner.
  const std::vector<double> &times_s() const { return times_s_; }

  void write(int iteration) { fill(out_.data(), size_bytes_, content_key(rank_, 0, iteration)); }

  void run() {
    if (partner_ == rank_) return;
    enter(Stage::small_messages, partner_);
    exchange_small();  // both are there
    const double begin_s = now_s();
    for (int k = 0; k < batch_; ++k) exchange_small();
    times_s_[0] = (now_s() - begin_s) / batch_ / 2;
    enter(Stage::large_messages, partner_);
    const bool is_first = rank_ < partner_;
    if (is_first) send_alone();
    else answer();
    if (is_first) answer();
    else send_alone();
    times_s_[2] = send_both();
    enter(Stage::waiting_for_all);
  }

  bool received(int iteration) const {
    return partner_ == rank_ || holds(in_.data(), size_bytes_, content_key(partner_, 0, iteration));
  }

 private:
  void exchange_small() {
    if (rank_ < partner_) {
      port_.send(out_, small_bytes, partner_, small_tag);
      port_.receive(in_, small_bytes, partner_, small_tag);
    } else {
      port_.receive(in_, small_bytes, partner_, small_tag);
      port_.send(out_, small_bytes, partner_, small_tag);
    }
  }

  void send_alone() {
    const double begin_s = now_s();
    port_.send(out_, size_bytes_, partner_, large_tag);
    port_.receive(in_, 0, partner_, acknowledgement_tag);
    times_s_[1] = now_s() - begin_s;
  }

  void answer() {
    port_.receive(in_, size_bytes_, partner_, large_tag);
    port_.send(out_, 0, partner_, acknowledgement_tag);
  }

  double send_both() {
    const double begin_s = now_s();
    std::vector<MPI_Request> requests = {port_.start_receive(in_.data(), size_bytes_, partner_, large_tag),
                                         port_.start_send(out_, size_bytes_, partner_, large_tag)};
    port_.wait(requests);
    return now_s() - begin_s;
  }

  Port port_;
  int rank_, partner_;
  std::size_t size_bytes_;
  int batch_;
  Buffer out_, in_;
  std::vector<double> times_s_;
};

void measure_pairs(const Task &task) {
  Team &team = task.team;
  const int players = team.size(), round = task.point.integer("round", 0, num_rounds(players) - 1);
  const auto size_bytes = static_cast<std::size_t>(std::max<long long>(task.point.integer("size_bytes"), small_bytes));
  Pair pair(team, opponent(team.rank(), round, players), size_bytes, task.point.integer("batch", 1, 1 << 20));
  SegmentCount segments(team);
  pair.run();  // connects the pair and touches the buffers
  Operation operation;
  operation.prepare = [&](int iteration) { pair.write(iteration); };
  operation.run = [&] { pair.run(); };
  operation.durations_s = [&]() -> const std::vector<double> & { return pair.times_s(); };
  const Series series = task.sampler.take(operation);
  operation.extra_members.emplace_back("pair_times_s", json_rows(series.durations_s, 3 * static_cast<std::size_t>(players)));
  segments.add_to(operation);
  task.sampler.write("check", "pairs", task.point, series, operation, pair.received(task.sampler.last_iteration()));
}

// One message from every other rank to the root, or to every other rank from the root.
class Cast {
 public:
  Cast(Team &team, int root, std::size_t size_bytes, bool inwards)
      : port_(team),
        rank_(team.rank()),
        size_(team.size()),
        root_(root),
        size_bytes_(size_bytes),
        inwards_(inwards),
        out_(size_bytes),
        in_(rank_ == root && inwards ? size_bytes * static_cast<std::size_t>(size_) : size_bytes) {}

  // Of the root: until all messages have arrived or are acknowledged.
  double time_s() const { return time_s_; }

  void write(int iteration) { fill(out_.data(), size_bytes_, content_key(rank_, 1, iteration)); }

  void run() {
    enter(Stage::many_messages, root_);
    const double begin_s = now_s();
    if (inwards_) run_inwards();
    else run_outwards();
    time_s_ = now_s() - begin_s;
    enter(Stage::waiting_for_all);
  }

  bool received(int iteration) const {
    if (inwards_ != (rank_ == root_)) return true;
    for (int r = 0; r < size_; ++r) {
      const std::size_t place = inwards_ ? static_cast<std::size_t>(r) : 0;
      const int sender = inwards_ ? r : root_;
      if (sender != rank_ && !holds(in_.data() + place * size_bytes_, size_bytes_, content_key(sender, 1, iteration))) return false;
    }
    return true;
  }

 private:
  void run_inwards() {
    if (rank_ != root_) {
      port_.send(out_, size_bytes_, root_, large_tag);
      return;
    }
    std::vector<MPI_Request> requests;
    for (int r = 0; r < size_; ++r) {
      if (r != rank_)
        requests.push_back(port_.start_receive(in_.data() + static_cast<std::size_t>(r) * size_bytes_, size_bytes_, r, large_tag));
    }
    port_.wait(requests);
  }

  void run_outwards() {
    if (rank_ != root_) {
      port_.receive(in_, size_bytes_, root_, large_tag);
      port_.send(out_, 0, root_, acknowledgement_tag);
      return;
    }
    std::vector<MPI_Request> requests;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      requests.push_back(port_.start_receive(in_.data(), 0, r, acknowledgement_tag));
      requests.push_back(port_.start_send(out_, size_bytes_, r, large_tag));
    }
    port_.wait(requests);
  }

  Port port_;
  int rank_, size_, root_;
  std::size_t size_bytes_;
  bool inwards_;
  Buffer out_, in_;
  double time_s_ = 0;
};

void measure_cast(const Task &task, bool inwards) {
  Team &team = task.team;
  const int root = task.point.integer("root", 0, team.size() - 1);
  Cast cast(team, root, static_cast<std::size_t>(task.point.integer("size_bytes")), inwards);
  cast.run();
  std::vector<double> durations_s(1);
  Operation operation;
  operation.prepare = [&](int iteration) { cast.write(iteration); };
  operation.run = [&] {
    cast.run();
    durations_s[0] = cast.time_s();
  };
  operation.durations_s = [&]() -> const std::vector<double> & { return durations_s; };
  const Series series = task.sampler.take(operation);
  std::vector<double> root_times_s;
  for (std::size_t k = static_cast<std::size_t>(root); k < series.durations_s.size(); k += static_cast<std::size_t>(team.size()))
    root_times_s.push_back(series.durations_s[k]);
  operation.extra_members.emplace_back("root_times_s", json_array(root_times_s));
  task.sampler.write("check", inwards ? "incast" : "outcast", task.point, series, operation,
                     cast.received(task.sampler.last_iteration()));
}

#ifndef EB_SIMULATED
// What is kept from the first point until the nodes are described, which is last.
struct Start {
  bool copies_once = false;
  double load_of_others = 0;
  std::string device_bytes;
  std::unique_ptr<ClockSync> clocks;
};
Start start;

constexpr int compute_iterations = 6;
constexpr double compute_s = 20e-3, turn_pause_s = 200e-6;
constexpr int turn_tag = 20;

void compare_clocks(Team &team) {
  if (!start.clocks) {
    start.device_bytes = device_bytes_json();
    start.clocks = std::make_unique<ClockSync>(team, wall_s);
  }
  start.clocks->compare();
}

// Returns when rank `from` has sent its sign. Sleeps, because virtual nodes share the cores.
void await_sign(Team &team, int from) {
  MPI_Request request;
  MPI_Irecv(nullptr, 0, MPI_BYTE, from, turn_tag, team.comm(), &request);
  for (int done = 0; !done;) {
    sleep_until(now_s() + turn_pause_s);
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
}

void give_sign(Team &team, int to) { MPI_Send(nullptr, 0, MPI_BYTE, to, turn_tag, team.comm()); }

// Rank 0 gives all others a sign, for which they wait asleep.
void await_first_rank(Team &team) {
  if (team.rank() > 0) await_sign(team, 0);
  for (int r = 1; team.rank() == 0 && r < team.size(); ++r) give_sign(team, r);
}

// Runs `work` on one rank after the other; the others sleep, also those that have had their turn.
template <class Work>
void take_turns(Team &team, const Work &work) {
  const int last = team.size() - 1;
  if (team.rank() > 0) await_sign(team, team.rank() - 1);
  work();
  if (team.rank() < last) {
    give_sign(team, team.rank() + 1);
    await_sign(team, last);
  } else {
    for (int r = 0; r < last; ++r) give_sign(team, r);
  }
}

std::string device_json() {
  JsonObject object;
  object.add("device_bytes_before", start.device_bytes).add("device_bytes", device_bytes_json());
  return object.str();
}

std::string members(const std::string &object) { return object.substr(1, object.size() - 2); }

void measure_nodes(const Task &task) {
  enter(Stage::describing);
  Team &team = task.team;
  const bool shared_machine = task.point.integer("shared_machine", 0, 1) == 1;
  const std::vector<Cpu> cores = shared_machine ? allowed_cpus() : usable_cores();
  CoreSpeed speed(cores);
  const double own_steps = team.rank() == 0 ? static_cast<double>(CoreSpeed::steps_in(compute_s)) : 0;
  await_first_rank(team);
  const auto steps = static_cast<std::int64_t>(team.broadcast(own_steps));
  // Before the first message and after the last one: work of others may begin or end between them.
  const double load = std::max(start.load_of_others, load_of_others());
  team.barrier();
  const Ticks before = count_ticks();
  Operation operation;
  operation.iterations = compute_iterations;
  operation.prepare = [](int) {};
  operation.run = [&] {
    if (shared_machine) take_turns(team, [&] { speed.measure(steps); });
    else speed.measure(steps);
  };
  const Series series = task.sampler.take(operation);
  const Ticks after = count_ticks();
  compare_clocks(team);
  const double ticks = std::max(after.all - before.all, 1.0);
  JsonObject more;
  more.add("cores", std::to_string(usable_cores().size()));
  more.add("load_of_others", json_number(load));
  more.add("stolen_share", json_number((after.stolen - before.stolen) / ticks));
  const std::string own = "{" + members(more.str()) + ", " + members(speed.json()) + ", " + members(device_json()) + "}";
  const std::vector<std::string> facts = team.gather(facts_json(start.copies_once, own));
  std::vector<double> offsets_s, drifts;
  for (int r = 0; team.rank() == 0 && r < team.size(); ++r) {
    offsets_s.push_back(-start.clocks->line(r).offset_s);
    drifts.push_back(-start.clocks->line(r).drift);
  }
  operation.extra_members.emplace_back("facts", json_array(facts));
  operation.extra_members.emplace_back("clock_offsets_s", json_array(offsets_s));
  operation.extra_members.emplace_back("clock_drifts", json_array(drifts));
  operation.extra_members.emplace_back("clock_round_trip_s", json_number(start.clocks->round_trip_s()));
  task.sampler.write("check", "nodes", task.point, series, operation, true);
}
#endif

void require_several(const Team &team) {
  if (team.size() < 2) refuse("a check compares nodes; give at least 2 ranks, each on a node of its own");
}

void measure(const Task &task) {
  const std::string part = task.point.text("part");
#ifndef EB_SIMULATED
  if (!start.clocks) compare_clocks(task.team);
  if (part == "nodes") {
    measure_nodes(task);
    return;
  }
#endif
  if (part == "pairs") measure_pairs(task);
  else if (part == "incast" || part == "outcast") measure_cast(task, part == "incast");
  else refuse("the request gives part=" + part + "; give pairs, incast, outcast or nodes (not simulated)");
}

}  // namespace

int main(int argc, char **argv) {
#ifndef EB_SIMULATED
  start.copies_once = can_copy_once();
  start.load_of_others = load_of_others();
  const std::string request = argc > 1 ? argv[argc - 1] : "";
  heartbeat = std::make_unique<Heartbeat>(request.substr(0, request.rfind('/') + 1) + ".");
  return kernel_main(argc, argv, require_several, measure, {}, [] {
    start.clocks.reset();
    heartbeat.reset();
  });
#else
  return kernel_main(argc, argv, require_several, measure);
#endif
}
