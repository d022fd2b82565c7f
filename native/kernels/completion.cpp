// Completion: when a send is complete. Rank 0 sends one message to rank 1; rank 0's time ends when its send is
// complete, rank 1's when it has the message. On one node both begin with rank 0: on a busy machine it may leave the
// barrier later than rank 1 by more than a transfer takes, and the share of the one time in the other would be wrong.
//
// receiver=prompt: rank 1 posts its receive before the barrier. Posted after it, some messages arrive first: those of
// MPICH 5.0.2 were seen to take twice as long then, their sends complete at half of that.
// receiver=late: rank 1 posts its receive after a pause that is long against the transfer, so a send that is complete
// before the pause ends did not wait for its receiver.
#include <algorithm>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/clock.hpp"
#include "harness/data_check.hpp"
#include "harness/kernel_main.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 17;
// The pause: long against what a scheduler or a prompt transfer takes, so that no send seems to wait for anything else.
constexpr double least_pause_s = 5e-3;
constexpr double pause_per_delivery = 3;
// A late point asks for yes or no and costs its pause every time: few iterations do, fewer where they are long.
constexpr int least_late_iterations = 3, most_late_iterations = 9;
constexpr int trial_iterations = 5;

class OneMessage {
 public:
  OneMessage(Team &team, std::size_t size_bytes)
      : team_(team), size_bytes_(size_bytes), sends_(team.rank() == 0), data_(size_bytes) {}

  // Before the barrier: the message is written, and a prompt receive (no pause) posted.
  void prepare(int iteration, double pause_s) {
    if (sends_) fill(data_.data(), size_bytes_, content_key(0, 0, iteration));
    else if (pause_s <= 0) post();
  }

  // A sleeping receiver takes no core from the sender where they share one.
  void run(double pause_s) {
    if (!sends_ && pause_s > 0) sleep_until(now_s() + pause_s);
    if (sends_ || pause_s > 0) post();
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
  }

  bool received(int iteration) const {
    return sends_ || holds(data_.data(), size_bytes_, content_key(0, 0, iteration));
  }

 private:
  void post() {
    const int count = static_cast<int>(size_bytes_);
    if (sends_) MPI_Isend(data_.data(), count, MPI_BYTE, 1, tag, team_.comm(), &request_);
    else MPI_Irecv(data_.data(), count, MPI_BYTE, 0, tag, team_.comm(), &request_);
  }

  Team &team_;
  std::size_t size_bytes_;
  bool sends_;
  Buffer data_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// Seconds from the barrier until rank 1 has a message that it awaits; the same on both ranks.
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
  return team.broadcast(team.rank() == 0 ? all_s[1] : 0.0);
}

void need_a_pair(const Team &team) {
  if (team.size() != 2) refuse("completion needs exactly 2 ranks");
}

void measure(const Task &task) {
  const std::string receiver = task.point.text("receiver");
  if (receiver != "prompt" && receiver != "late")
    refuse("the plan gives receiver=" + receiver + "; give prompt or late");
  OneMessage message(task.team, static_cast<std::size_t>(task.point.integer("size_bytes")));
  Operation operation;
  double pause_s = 0;
  if (receiver == "late") {
    const double delivery_s = prompt_delivery_s(task.team, message);
    pause_s = std::max(least_pause_s, pause_per_delivery * delivery_s);
    const double affordable = task.line.rules.budget_s / (pause_s + delivery_s);
    operation.iterations =
        static_cast<int>(std::clamp<double>(affordable, least_late_iterations, most_late_iterations));
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

int main(int argc, char **argv) { return kernel_main(argc, argv, need_a_pair, measure); }
