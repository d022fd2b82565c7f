// Pipeline: rank 0 hands rank 1 a buffer whose partitions become ready one after the other, the last one late. What is
// timed is time-to-solution (Gillis et al. 2023): from the start until rank 1 has every partition, less the delay. The
// ways to send are measured interleaved, each a class below.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/clock.hpp"
#include "harness/data_check.hpp"
#include "harness/kernel_main.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 19;
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

// One way to bring the partitions over. Rank 1 calls `start` and `wait`; rank 0 calls `ready` between them, once for
// each partition, in order.
class Way {
 public:
  explicit Way(Transfer &transfer) : transfer_(transfer) {}
  virtual ~Way() = default;
  Way(const Way &) = delete;
  Way &operator=(const Way &) = delete;

  virtual void start() = 0;
  virtual void ready(int partition) = 0;
  virtual void wait() = 0;

 protected:
  Transfer &transfer_;
};

// Bulk: one message when every partition is ready.
class Single : public Way {
 public:
  using Way::Way;

  void start() override {
    if (!transfer_.sends())
      MPI_Irecv(transfer_.buffer.data(), count(), MPI_BYTE, 0, tag, transfer_.team.comm(), &request_);
  }

  void ready(int partition) override {
    if (partition == transfer_.num_partitions - 1)
      MPI_Isend(transfer_.buffer.data(), count(), MPI_BYTE, 1, tag, transfer_.team.comm(), &request_);
  }

  void wait() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  int count() const { return static_cast<int>(transfer_.size_bytes); }

  MPI_Request request_ = MPI_REQUEST_NULL;
};

// One message per partition, sent when it is ready.
class Many : public Way {
 public:
  explicit Many(Transfer &transfer)
      : Way(transfer), requests_(static_cast<std::size_t>(transfer.num_partitions), MPI_REQUEST_NULL) {}

  // Messages of one pair and tag are matched in the order they are posted in.
  void start() override {
    for (int k = 0; !transfer_.sends() && k < transfer_.num_partitions; ++k)
      MPI_Irecv(transfer_.partition(k), count(), MPI_BYTE, 0, tag, transfer_.team.comm(), request(k));
  }

  void ready(int partition) override {
    MPI_Isend(transfer_.partition(partition), count(), MPI_BYTE, 1, tag, transfer_.team.comm(), request(partition));
  }

  void wait() override {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  int count() const { return static_cast<int>(transfer_.partition_bytes()); }
  MPI_Request *request(int k) { return &requests_[static_cast<std::size_t>(k)]; }

  std::vector<MPI_Request> requests_;
};

template <class Kind>
std::unique_ptr<Way> make(Transfer &transfer) {
  return std::make_unique<Kind>(transfer);
}

const std::map<std::string, std::unique_ptr<Way> (*)(Transfer &)> known_ways = {
    {"single", make<Single>},
    {"many", make<Many>},
};

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

// The template of figure 3 of Gillis et al. 2023 with one thread. Returns how late the last partition was ready.
double bring_over(Transfer &transfer, Way &way, double delay_s) {
  double late_s = 0;
  const double begin_s = now_s();
  way.start();
  if (transfer.sends()) {
    const int last = transfer.num_partitions - 1;
    for (int k = 0; k < last; ++k) way.ready(k);
    late_s = be_late(begin_s, delay_s, transfer.team.oversubscribed());
    way.ready(last);
  }
  way.wait();
  return late_s;
}

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
  std::vector<Operation> operations;
  for (const std::string &name : task.line.ways) {
    const auto found = known_ways.find(name);
    if (found == known_ways.end()) refuse("pipeline knows no way " + name);
    Way &way = *ways.emplace_back(found->second(transfer));
    Operation operation;
    operation.way = name;
    operation.prepare = [&, sends](int iteration) {
      if (sends) fill(buffer.data(), size_bytes, content_key(0, 0, iteration));
    };
    operation.run = [&] { late_s = bring_over(transfer, way, delay_s); };
    operation.check = [&, sends](int iteration) {
      return sends || holds(buffer.data(), size_bytes, content_key(0, 0, iteration));
    };
    operation.delay_s = [&] { return late_s; };
    operation.reduction = Reduction::delivery;
    operations.push_back(operation);
  }
  if (operations.empty()) refuse("pipeline needs --ways, such as --ways single,many");

  const std::vector<Series> all = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k)
    task.sampler.write("pipeline", "time_to_solution", task.point, all[k], operations[k], all[k].delivered, delay_s);
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, need_a_pair, measure); }
