// Pipeline: rank 0 hands rank 1 a buffer whose partitions become ready one after the other, the last one late. What is
// timed is time-to-solution (Gillis et al. 2023): from the start until rank 1 has every partition, less the delay. The
// ways to send are measured interleaved, each a class below.
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/clock.hpp"
#include "harness/data_check.hpp"
#include "harness/kernel_main.hpp"
#include "harness/partitioned.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 19;  // the first of those used
// A sleeper wakes up to this much late (timer slack of Linux is 50 us); the rest of a delay is spent awake.
constexpr double awake_s = 150e-6;

// The buffer of one rank and its peer.
struct Transfer {
  Team &team;
  Buffer &buffer;
  std::size_t size_bytes;
  int num_partitions;

  bool sends() const { return team.rank() == 0; }
  std::size_t partition_bytes() const { return size_bytes / static_cast<std::size_t>(num_partitions); }
  std::byte *partition(int k) { return buffer.data() + static_cast<std::size_t>(k) * partition_bytes(); }
};

// One way to bring the partitions over. Rank 1 calls `start` and `wait`. Rank 0 calls `ready` between them once for each
// partition, from as many threads as it has, and then, when all have done so, `all_ready`.
class Way {
 public:
  explicit Way(Transfer &transfer) : transfer_(transfer) {}
  virtual ~Way() = default;
  Way(const Way &) = delete;
  Way &operator=(const Way &) = delete;

  virtual void prepare() {}  // outside of what is timed
  virtual void start() = 0;
  virtual void ready(int partition) = 0;
  virtual void all_ready() {}
  virtual void wait() = 0;

 protected:
  int peer() const { return transfer_.sends() ? 1 : 0; }

  Transfer &transfer_;
};

// Bulk: one persistent message when every partition is ready.
class Single : public Way {
 public:
  explicit Single(Transfer &transfer) : Way(transfer) {
    const int count = static_cast<int>(transfer.size_bytes);
    if (transfer.sends())
      MPI_Send_init(transfer.buffer.data(), count, MPI_BYTE, peer(), tag, transfer.team.comm(), &request_);
    else
      MPI_Recv_init(transfer.buffer.data(), count, MPI_BYTE, peer(), tag, transfer.team.comm(), &request_);
  }
  ~Single() override { MPI_Request_free(&request_); }

  void start() override {
    if (!transfer_.sends()) MPI_Start(&request_);
  }
  void ready(int) override {}
  void all_ready() override { MPI_Start(&request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// One persistent message per partition, sent when it is ready.
class Many : public Way {
 public:
  // Messages of one pair and tag would be matched in the order they are sent in, which threads do not keep.
  explicit Many(Transfer &transfer)
      : Way(transfer), requests_(static_cast<std::size_t>(transfer.num_partitions), MPI_REQUEST_NULL) {
    const int count = static_cast<int>(transfer.partition_bytes());
    for (int k = 0; k < transfer.num_partitions; ++k) {
      if (transfer.sends())
        MPI_Send_init(transfer.partition(k), count, MPI_BYTE, peer(), tag + k, transfer.team.comm(), request(k));
      else
        MPI_Recv_init(transfer.partition(k), count, MPI_BYTE, peer(), tag + k, transfer.team.comm(), request(k));
    }
  }
  ~Many() override {
    for (MPI_Request &request : requests_) MPI_Request_free(&request);
  }

  void start() override {
    if (!transfer_.sends()) MPI_Startall(transfer_.num_partitions, requests_.data());
  }
  void ready(int partition) override { MPI_Start(request(partition)); }
  void wait() override { MPI_Waitall(transfer_.num_partitions, requests_.data(), MPI_STATUSES_IGNORE); }

 private:
  MPI_Request *request(int k) { return &requests_[static_cast<std::size_t>(k)]; }

  std::vector<MPI_Request> requests_;
};

// MPI-4 partitioned communication, of whoever answers its calls. Requests are made anew after every `max_starts` starts.
class Partitioned : public Way {
 public:
  explicit Partitioned(Transfer &transfer, int max_starts = std::numeric_limits<int>::max())
      : Way(transfer), max_starts_(max_starts), tag_(next_tag()) {
    make();
  }
  ~Partitioned() override { MPI_Request_free(&request_); }

  void prepare() override {
    if (num_starts_ == max_starts_) {
      MPI_Request_free(&request_);
      make();
      num_starts_ = 0;
    }
    ++num_starts_;
  }
  void start() override { MPI_Start(&request_); }
  void ready(int partition) override { MPI_Pready(partition, request_); }
  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  void make() {
    const auto count = static_cast<MPI_Count>(transfer_.partition_bytes());
    if (transfer_.sends())
      MPI_Psend_init(transfer_.buffer.data(), transfer_.num_partitions, count, MPI_BYTE, peer(), tag_,
                     transfer_.team.comm(), MPI_INFO_NULL, &request_);
    else
      MPI_Precv_init(transfer_.buffer.data(), transfer_.num_partitions, count, MPI_BYTE, peer(), tag_,
                     transfer_.team.comm(), MPI_INFO_NULL, &request_);
  }

  // A program has few requests of one tag; libearlybird treats the first ones of a tag as the usual case.
  static int next_tag() {
    static int made = 0;
    return tag + made++ % num_tags;
  }
  static constexpr int num_tags = 400;

  const int max_starts_;
  const int tag_;
  int num_starts_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// libearlybird before it has learned anything: its first plan is made in a request's second start and followed from the
// third on.
constexpr int starts_before_plan = 2;
// libearlybird plans at the starts 2, 8 and 32 of a request; what follows later changes little.
constexpr int starts_until_settled = 40;

struct Kind {
  std::unique_ptr<Way> (*make)(Transfer &);
  int settling = 0;
  enum { any, of_the_mpi, of_earlybird } partitioned = any;  // whose partitioned calls the way is about
};

template <class Made>
std::unique_ptr<Way> make(Transfer &transfer) {
  return std::make_unique<Made>(transfer);
}

std::unique_ptr<Way> make_fresh(Transfer &transfer) {
  return std::make_unique<Partitioned>(transfer, starts_before_plan);
}

const std::map<std::string, Kind> known_ways = {
    {"single", {make<Single>}},
    {"many", {make<Many>}},
    {"partitioned", {make<Partitioned>, 0, Kind::of_the_mpi}},
    {"earlybird", {make<Partitioned>, starts_until_settled, Kind::of_earlybird}},
    {"earlybird-fresh", {make_fresh, 0, Kind::of_earlybird}},
};

// A sample can so never be of another library than its way says.
const Kind &find_kind(const std::string &name) {
  const auto found = known_ways.find(name);
  if (found == known_ways.end()) refuse("pipeline knows no way " + name);
  if (found->second.partitioned != Kind::any)
    need_partitioned(found->second.partitioned == Kind::of_earlybird, "the way " + name);
  return found->second;
}

// Waits until `delay_s` after `begin_s` without a call of MPI, as a computation does, and returns how late that was. Where
// ranks outnumber cores the sender sleeps to the end, because a spinning one would keep the receiver from its core.
double be_late(double begin_s, double delay_s, bool oversubscribed) {
  const double due_s = begin_s + delay_s;
  // Sending took longer than the computation beside it: what is beyond the delay is the cost of sending.
  if (now_s() >= due_s) return delay_s;
  if (oversubscribed) {
    sleep_until(due_s);
  } else {
    if (delay_s > awake_s) sleep_until(due_s - awake_s);
    while (now_s() < due_s) continue;
  }
  return now_s() - begin_s;
}

// The template of figure 3 of Gillis et al. 2023: thread t readies its share of the partitions, the last one late.
class Template {
 public:
  Template(Transfer &transfer, Way &way, Crew &crew, double delay_s)
      : transfer_(transfer), way_(way), crew_(crew), delay_s_(delay_s), share_([this](int thread) { ready(thread); }) {}

  // Returns how late the last partition was ready.
  double bring_over() {
    late_s_ = 0;
    begin_s_ = now_s();
    way_.start();
    if (transfer_.sends()) {
      crew_.run(share_, Crew::Then::stand_by);
      way_.all_ready();
    }
    way_.wait();
    return late_s_;
  }

 private:
  void ready(int thread) {
    const int num = transfer_.num_partitions;
    const auto first = [&](int t) { return static_cast<int>(static_cast<long long>(num) * t / crew_.size()); };
    for (int k = first(thread); k < first(thread + 1); ++k) {
      if (k == num - 1) late_s_ = be_late(begin_s_, delay_s_, transfer_.team.oversubscribed());
      way_.ready(k);
    }
  }

  Transfer &transfer_;
  Way &way_;
  Crew &crew_;
  const double delay_s_;
  const std::function<void(int)> share_;
  double begin_s_ = 0, late_s_ = 0;
};

void need_a_pair(const Team &team) {
  if (team.size() != 2) refuse("pipeline needs exactly 2 ranks");
}

// Delay rate x partition, the D of Gillis et al. 2023.
double delay_of(const Point &point) {
  const long long size_bytes = point.integer("size_bytes"), num_partitions = point.integer("partitions");
  const double gamma_s_per_byte = point.number("gamma_s_per_byte");
  if (num_partitions < 1 || size_bytes < 0 || size_bytes % num_partitions != 0)
    refuse("the plan gives size_bytes=" + point.text("size_bytes") + " partitions=" + point.text("partitions") +
           "; give 1 partition or more, all of one whole size");
  if (gamma_s_per_byte < 0)
    refuse("the plan gives gamma_s_per_byte=" + point.text("gamma_s_per_byte") + "; give 0 or more");
  return gamma_s_per_byte * static_cast<double>(size_bytes / num_partitions);
}

void measure(const Task &task) {
  const double delay_s = delay_of(task.point);
  const auto size_bytes = static_cast<std::size_t>(task.point.integer("size_bytes"));
  Buffer buffer(size_bytes);
  Transfer transfer{task.team, buffer, size_bytes, static_cast<int>(task.point.integer("partitions"))};
  const bool sends = transfer.sends();
  double late_s = 0;

  std::vector<std::unique_ptr<Way>> ways;
  std::vector<std::unique_ptr<Template>> templates;
  std::vector<Operation> operations;
  for (const std::string &name : task.line.ways) {
    const Kind &kind = find_kind(name);
    Way &way = *ways.emplace_back(kind.make(transfer));
    Template &one = *templates.emplace_back(std::make_unique<Template>(transfer, way, task.crew, delay_s));
    Operation operation;
    operation.way = name;
    operation.settling = kind.settling;
    operation.prepare = [&, sends](int iteration) {
      way.prepare();
      if (sends) fill(buffer.data(), size_bytes, content_key(0, 0, iteration));
    };
    operation.run = [&] { late_s = one.bring_over(); };
    operation.check = [&, sends](int iteration) {
      return sends || holds(buffer.data(), size_bytes, content_key(0, 0, iteration));
    };
    operation.delay_s = [&] { return late_s; };
    operation.reduction = Reduction::delivery;
    operations.push_back(operation);
  }
  if (operations.empty()) refuse("pipeline needs --ways, such as --ways single,many");

  const std::vector<Series> all = task.sampler.take(operations);
  task.crew.run([](int) {});  // those that stand by may rest
  for (std::size_t k = 0; k < all.size(); ++k)
    task.sampler.write("pipeline", "time_to_solution", task.point, all[k], operations[k], all[k].delivered, delay_s);
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, need_a_pair, measure); }
