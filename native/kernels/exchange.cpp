// Exchange: Algorithm 2 of Thune et al. 2023, the messages of a pattern file (int64 triples src, dst, bytes). Every rank
// posts its sends, then its receives, waits for the sends, then for the receives; every rank's time is kept.
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/buffer.hpp"
#include "harness/data_check.hpp"
#include "harness/kernel_main.hpp"

using namespace earlybird;

namespace {

constexpr int tag = 13;
constexpr std::size_t cache_line_bytes = 64;

struct Message {
  std::int64_t number;  // its row in the pattern
  int peer;
  std::size_t size_bytes;
  std::size_t offset;  // in the buffer of all messages sent, or of all received, by this rank
};

// One direction of a rank's messages, each beginning on a cache line.
struct Messages {
  std::vector<Message> list;
  std::size_t total_bytes = 0;

  void append(std::int64_t number, std::int64_t peer, std::int64_t size_bytes) {
    const auto size = static_cast<std::size_t>(size_bytes);
    list.push_back({number, static_cast<int>(peer), size, total_bytes});
    total_bytes += (size + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
  }
};

struct Neighbours {
  Messages sends, receives;
};

Neighbours read_pattern(const std::string &path, int rank) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("cannot read the pattern " + path);
  Neighbours neighbours;
  std::int64_t triple[3];
  for (std::int64_t number = 0; file.read(reinterpret_cast<char *>(triple), sizeof triple); ++number) {
    if (triple[0] == rank) neighbours.sends.append(number, triple[1], triple[2]);
    if (triple[1] == rank) neighbours.receives.append(number, triple[0], triple[2]);
  }
  return neighbours;
}

class Exchange {
 public:
  Exchange(Team &team, Neighbours neighbours)
      : team_(team),
        sends_(std::move(neighbours.sends.list)),
        receives_(std::move(neighbours.receives.list)),
        out_(neighbours.sends.total_bytes),
        in_(neighbours.receives.total_bytes),
        send_requests_(sends_.size()),
        receive_requests_(receives_.size()) {}

  void write_messages(int iteration) {
    for (const Message &message : sends_)
      fill(out_.data() + message.offset, message.size_bytes, content_key(team_.rank(), message.number, iteration));
  }

  // Messages of one pair share a tag: they are matched in the order of the pattern, which both sides post in.
  void run() {
    for (std::size_t k = 0; k < sends_.size(); ++k)
      MPI_Isend(out_.data() + sends_[k].offset, static_cast<int>(sends_[k].size_bytes), MPI_BYTE, sends_[k].peer, tag,
                team_.comm(), &send_requests_[k]);
    for (std::size_t k = 0; k < receives_.size(); ++k)
      MPI_Irecv(in_.data() + receives_[k].offset, static_cast<int>(receives_[k].size_bytes), MPI_BYTE,
                receives_[k].peer, tag, team_.comm(), &receive_requests_[k]);
    for (MPI_Request &request : send_requests_) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (MPI_Request &request : receive_requests_) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  bool received(int iteration) const {
    for (const Message &message : receives_) {
      if (!holds(in_.data() + message.offset, message.size_bytes, content_key(message.peer, message.number, iteration)))
        return false;
    }
    return true;
  }

 private:
  Team &team_;
  std::vector<Message> sends_, receives_;
  Buffer out_, in_;
  std::vector<MPI_Request> send_requests_, receive_requests_;
};

void need_nothing(const Team &) {}

void measure(const Task &task) {
  Exchange exchange(task.team, read_pattern(task.line.pattern, task.team.rank()));
  Operation operation;
  operation.prepare = [&](int iteration) { exchange.write_messages(iteration); };
  operation.run = [&] { exchange.run(); };
  operation.keep_rank_times = true;
  const Series series = task.sampler.take(operation);
  const bool validated = exchange.received(task.sampler.last_iteration());
  task.sampler.write("exchange", "exchange", task.point, series, operation, validated);
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, need_nothing, measure); }
