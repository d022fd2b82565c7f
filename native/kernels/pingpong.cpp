// Ping-pong: half the round trip time of one message between ranks 0 and 1; the request gives the sizes.
#include "harness/kernel_main.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 7;

class PingPong {
 public:
  PingPong(Team &team, std::size_t size_bytes) : team_(team), size_bytes_(size_bytes), out_(size_bytes), in_(size_bytes) {}

  void write_message(int iteration) { fill(out_.data(), size_bytes_, content_key(team_.rank(), 0, iteration)); }

  // `batch` round trips.
  void run(int batch) {
    const int count = static_cast<int>(size_bytes_);
    for (int k = 0; k < batch; ++k) {
      if (team_.rank() == 0) {
        MPI_Send(out_.data(), count, MPI_BYTE, 1, tag, team_.comm());
        MPI_Recv(in_.data(), count, MPI_BYTE, 1, tag, team_.comm(), MPI_STATUS_IGNORE);
      } else if (team_.rank() == 1) {
        MPI_Recv(in_.data(), count, MPI_BYTE, 0, tag, team_.comm(), MPI_STATUS_IGNORE);
        MPI_Send(out_.data(), count, MPI_BYTE, 0, tag, team_.comm());
      }
    }
  }

  bool received(int iteration) const {
    return team_.rank() > 1 || holds(in_.data(), size_bytes_, content_key(1 - team_.rank(), 0, iteration));
  }

 private:
  Team &team_;
  std::size_t size_bytes_;
  Buffer out_, in_;
};

void require_two_ranks(const Team &team) {
  if (team.size() < 2) refuse("ping-pong needs at least 2 ranks");
}

void measure(const Task &task) {
  PingPong pingpong(task.team, static_cast<std::size_t>(task.point.integer("size_bytes")));
  const bool vary = varies_contents(task.point);
  int written = 0;
  pingpong.write_message(written);
  Operation operation;
  operation.batch = task.sampler.choose_batch([&](int batch) { pingpong.run(batch); });
  operation.prepare = [&](int iteration) {
    if (vary) pingpong.write_message(written = iteration);
  };
  operation.run = [&] { pingpong.run(operation.batch); };
  operation.divisor = 2;
  operation.reduction = Reduction::rank_0;
  const Series series = task.sampler.take(operation);
  task.sampler.write("pingpong", "half_round_trip", task.point, series, operation, pingpong.received(written));
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, require_two_ranks, measure); }
