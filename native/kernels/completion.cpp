// Completion: when a send is complete. Each rank of the first half sends one message to its pair in the second half; a
// sender's time ends when its send is complete, a receiver's when it has the message. All times begin at rank 0's start: on a
// busy machine rank 0 may leave the barrier later than its pair by more than a transfer takes, and the ratio of the times
// would be wrong. With several pairs the messages share the link, and with it the buffers on the way.
//
// receiver=prompt: receives are posted before the barrier. If they are posted later, some messages arrive before the receive
// is posted; with MPICH 5.0.2 these took twice as long, and their sends completed after half of that time.
// receiver=late: receives are posted after a pause that is long compared with the transfer, so a send that completes
// before the pause ends did not wait for its receiver.
#include <algorithm>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/machine/clock.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/sampling/stop_rule.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 17;
// The pause: long compared with scheduling delays and a prompt transfer, so that only waiting for the receiver is this long.
constexpr double min_pause_s = 5e-3;
constexpr double pause_per_delivery = 3;
// A late point has a yes/no result and costs one pause per iteration: few iterations suffice, fewer if pauses are long.
constexpr int min_late_iterations = 3, max_late_iterations = 9;
constexpr int trial_iterations = 5;

class OneMessage {
 public:
  OneMessage(Team &team, std::size_t size_bytes)
      : team_(team),
        size_bytes_(size_bytes),
        sends_(team.rank() < team.size() / 2),
        peer_((team.rank() + team.size() / 2) % team.size()),
        data_(size_bytes) {}

  // Before the barrier: writes the message, and posts a prompt receive (no pause).
  void prepare(int iteration, double pause_s) {
    if (sends_) fill(data_.data(), size_bytes_, content_key(team_.rank(), 0, iteration));
    else if (pause_s <= 0) post();
  }

  // The receiver sleeps so that it leaves the core to the sender if they share one.
  void run(double pause_s) {
    if (!sends_ && pause_s > 0) sleep_until(now_s() + pause_s);
    if (sends_ || pause_s > 0) post();
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
  }

  bool received(int iteration) const { return sends_ || holds(data_.data(), size_bytes_, content_key(peer_, 0, iteration)); }

 private:
  void post() {
    const int count = static_cast<int>(size_bytes_);
    if (sends_) MPI_Isend(data_.data(), count, MPI_BYTE, peer_, tag, team_.comm(), &request_);
    else MPI_Irecv(data_.data(), count, MPI_BYTE, peer_, tag, team_.comm(), &request_);
  }

  Team &team_;
  std::size_t size_bytes_;
  bool sends_;
  int peer_;
  Buffer data_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// Seconds from the barrier until the slowest rank has received a message with a posted receive; the same on all ranks.
double prompt_delivery_s(Team &team, OneMessage &message) {
  std::vector<double> own_s;
  for (int k = 0; k < trial_iterations; ++k) {
    message.prepare(k, 0);
    team.barrier();
    const double begin_s = now_s();
    message.run(0);
    own_s.push_back(now_s() - begin_s);
  }
  const std::vector<double> all_s = team.gather(std::vector<double>{median(own_s)});
  return team.broadcast(team.rank() == 0 ? *std::max_element(all_s.begin(), all_s.end()) : 0.0);
}

void require_pairs(const Team &team) {
  if (team.size() % 2 != 0) refuse("completion needs an even number of ranks");
}

void measure(const Task &task) {
  const std::string receiver = task.point.text("receiver");
  if (receiver != "prompt" && receiver != "late") refuse("the request gives receiver=" + receiver + "; give prompt or late");
  OneMessage message(task.team, static_cast<std::size_t>(task.point.integer("size_bytes")));
  Operation operation;
  double pause_s = 0;
  if (receiver == "late") {
    const double delivery_s = prompt_delivery_s(task.team, message);
    pause_s = std::max(min_pause_s, pause_per_delivery * delivery_s);
    const double affordable = task.request.rules.budget_s / (pause_s + delivery_s);
    operation.iterations = static_cast<int>(std::clamp<double>(affordable, min_late_iterations, max_late_iterations));
  }
  operation.prepare = [&](int iteration) { message.prepare(iteration, pause_s); };
  operation.run = [&] { message.run(pause_s); };
  operation.reduction = Reduction::delivery;
  operation.keep_rank_times = true;
  const Series series = task.sampler.take(operation);
  const bool validated = message.received(task.sampler.last_iteration());
  task.sampler.write("completion", "completion", task.point, series, operation, validated);
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, require_pairs, measure); }
