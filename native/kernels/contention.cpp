// Contention: Algorithm 1 of Thune et al. 2023. P ranks form P/2 pairs (rank r and r + P/2); each rank posts `repeats`
// sends and receives of one size, at distinct offsets of a buffer, then waits for all of them. With directions=1 only
// the first half sends: BW_SP within a socket is measured with a single pair in one direction.
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/messages/blocks.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 11;

class PairExchange {
 public:
  PairExchange(Team &team, std::size_t size_bytes, int repeats, bool one_way)
      : team_(team),
        messages_{size_bytes, repeats},
        first_half_(team.rank() < team.size() / 2),
        sends_(!one_way || first_half_),
        receives_(!one_way || !first_half_),
        partner_(first_half_ ? team.rank() + team.size() / 2 : team.rank() - team.size() / 2),
        out_(sends_ ? messages_.offset(repeats) : 0),
        in_(receives_ ? messages_.offset(repeats) : 0) {
    requests_.reserve(2 * static_cast<std::size_t>(repeats));
  }

  void write_messages(int iteration) {
    if (sends_) messages_.fill_all(out_.data(), [&](int k) { return content_key(team_.rank(), k, iteration); });
  }

  void run() {
    requests_.clear();
    for (int k = 0; k < messages_.count; ++k) {
      // The first half posts its sends first, the second half its receives (Algorithm 1, lines 6-7 and 12-13).
      if (first_half_) {
        send(k);
        receive(k);
      } else {
        receive(k);
        send(k);
      }
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

  bool received(int iteration) const {
    return !receives_ || messages_.hold_all(in_.data(), [&](int k) { return content_key(partner_, k, iteration); });
  }

 private:
  void send(int k) {
    if (!sends_) return;
    MPI_Isend(out_.data() + messages_.offset(k), static_cast<int>(messages_.block_bytes), MPI_BYTE, partner_, tag, team_.comm(),
              &requests_.emplace_back());
  }

  void receive(int k) {
    if (!receives_) return;
    MPI_Irecv(in_.data() + messages_.offset(k), static_cast<int>(messages_.block_bytes), MPI_BYTE, partner_, tag, team_.comm(),
              &requests_.emplace_back());
  }

  Team &team_;
  const Blocks messages_;
  bool first_half_, sends_, receives_;
  int partner_;
  Buffer out_, in_;
  std::vector<MPI_Request> requests_;
};

void require_pairs(const Team &team) {
  if (team.size() % 2 != 0) refuse("contention needs an even number of ranks");
}

void measure(const Task &task) {
  const int repeats = static_cast<int>(task.point.integer("repeats"));
  const bool one_way = task.point.integer("directions") == 1;
  PairExchange exchange(task.team, static_cast<std::size_t>(task.point.integer("size_bytes")), repeats, one_way);
  Operation operation;
  operation.prepare = [&](int iteration) { exchange.write_messages(iteration); };
  operation.run = [&] { exchange.run(); };
  operation.batch = repeats;
  const Series series = task.sampler.take(operation);
  const bool validated = exchange.received(task.sampler.last_iteration());
  task.sampler.write("contention", "time_per_repeat", task.point, series, operation, validated);
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, require_pairs, measure); }
