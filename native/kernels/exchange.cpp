// Exchange: Algorithm 2 of Thune et al. 2023, the messages of a pattern file (int64 triples src, dst, bytes). Every rank
// posts its sends, then its receives, waits for the sends, then for the receives. Every rank's time is kept, from its own
// start or, if ranks share cores, from the start of the first rank. With several threads, the messages of a rank are
// assigned to its threads in turn, and each thread does the same with its share.
//
// A point with `stages`, such as 12+5+12, has several exchanges, each of as many rows of the pattern. A rank begins the next
// one when its messages of the one before are complete, as if it forwarded what it received.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/request/pattern.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

namespace {

constexpr int first_tag = 13;
constexpr std::size_t cache_line_bytes = 64;

struct Message {
  std::int64_t number;  // its row in the pattern
  int peer;
  int tag;
  std::size_t size_bytes;
  std::size_t offset;  // in the buffer of all messages sent, or of all received, by this rank
};

// One direction of a rank's messages, each aligned to a cache line, assigned to threads.
//
// The k-th message of a pair has the k-th tag, so that sender and receiver may assign it to different threads. Tags are
// reused if there are not enough; messages with the same tag match in order (MPI 4.1, 3.5) and so stay on one thread.
class Messages {
 public:
  Messages(int num_threads, std::int64_t num_tags) : num_tags_(num_tags), by_thread_(static_cast<std::size_t>(num_threads)) {}

  void append(std::int64_t number, int peer, int size_bytes) {
    const auto size = static_cast<std::size_t>(size_bytes);
    Pair &pair = pairs_[peer];
    const auto which = static_cast<std::size_t>(pair.count++ % num_tags_);
    if (which == pair.thread_of_tag.size()) pair.thread_of_tag.push_back(num_assigned_++ % by_thread_.size());
    by_thread_[pair.thread_of_tag[which]].push_back({number, peer, first_tag + static_cast<int>(which), size, total_bytes_});
    total_bytes_ += (size + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
  }

  const std::vector<Message> &of_thread(std::size_t thread) const { return by_thread_[thread]; }
  std::size_t total_bytes() const { return total_bytes_; }

 private:
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::size_t> thread_of_tag;
  };

  std::int64_t num_tags_;
  std::size_t num_assigned_ = 0, total_bytes_ = 0;
  std::map<std::int64_t, Pair> pairs_;  // by the other rank
  std::vector<std::vector<Message>> by_thread_;
};

struct Neighbours {
  Messages sends, receives;
};

std::int64_t count_tags(MPI_Comm comm) {
  int *tag_ub = nullptr, found = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, &tag_ub, &found);
  constexpr int guaranteed_tag_ub = 32767;  // guaranteed by the standard
  return (found ? *tag_ub : guaranteed_tag_ub) - first_tag + std::int64_t{1};
}

// The row of the pattern at which each stage ends; without `stages` all rows are one.
std::vector<std::int64_t> stage_ends(const Point &point) {
  if (!point.has("stages")) return {std::numeric_limits<std::int64_t>::max()};
  std::vector<std::int64_t> ends;
  std::istringstream counts(point.text("stages"));
  std::int64_t end = 0;
  for (std::string count; std::getline(counts, count, '+'); ends.push_back(end)) {
    if (count.empty() || count.size() > 12 || count.find_first_not_of("0123456789") != std::string::npos)
      refuse("the request gives stages=" + point.text("stages") + "; give numbers of messages such as 12+5+12");
    end += std::stoll(count);
  }
  return ends;
}

// The neighbours of each stage.
std::vector<Neighbours> find_neighbours(const Task &task) {
  const Team &team = task.team;
  const std::vector<std::int64_t> ends = stage_ends(task.point);
  const Messages none(task.crew.size(), count_tags(team.comm()));
  std::vector<Neighbours> stages(ends.size(), Neighbours{none, none});
  std::int64_t num_messages = 0;
  read_pattern(task.request.pattern, team.size(), [&](const PatternMessage &message) {
    const auto after = std::upper_bound(ends.begin(), ends.end(), message.number);
    if (after == ends.end()) refuse("the pattern has more messages than the stages " + task.point.text("stages"));
    num_messages = message.number + 1;
    Neighbours &stage = stages[static_cast<std::size_t>(after - ends.begin())];
    if (message.source == team.rank()) stage.sends.append(message.number, message.destination, message.size_bytes);
    if (message.destination == team.rank()) stage.receives.append(message.number, message.source, message.size_bytes);
  });
  if (task.point.has("stages") && ends.back() != num_messages)
    refuse("the stages " + task.point.text("stages") + " have " + std::to_string(ends.back()) + " messages and the pattern has " +
           std::to_string(num_messages) + "; give as many");
  return stages;
}

// The messages of one thread.
class Share {
 public:
  Share(const Team &team, std::vector<Message> sends, std::vector<Message> receives, std::byte *out, std::byte *in)
      : comm_(team.comm()),
        rank_(team.rank()),
        sends_(std::move(sends)),
        receives_(std::move(receives)),
        out_(out),
        in_(in),
        send_requests_(sends_.size()),
        receive_requests_(receives_.size()) {}

  void write(int iteration) {
    for (const Message &message : sends_)
      fill(out_ + message.offset, message.size_bytes, content_key(rank_, message.number, iteration));
  }

  void run() {
    for (std::size_t k = 0; k < sends_.size(); ++k)
      MPI_Isend(out_ + sends_[k].offset, static_cast<int>(sends_[k].size_bytes), MPI_BYTE, sends_[k].peer, sends_[k].tag, comm_,
                &send_requests_[k]);
    for (std::size_t k = 0; k < receives_.size(); ++k)
      MPI_Irecv(in_ + receives_[k].offset, static_cast<int>(receives_[k].size_bytes), MPI_BYTE, receives_[k].peer, receives_[k].tag,
                comm_, &receive_requests_[k]);
    for (MPI_Request &request : send_requests_) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (MPI_Request &request : receive_requests_) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }

  bool received(int iteration) const {
    for (const Message &message : receives_) {
      if (!holds(in_ + message.offset, message.size_bytes, content_key(message.peer, message.number, iteration))) return false;
    }
    return true;
  }

 private:
  MPI_Comm comm_;
  int rank_;
  std::vector<Message> sends_, receives_;
  std::byte *out_, *in_;
  std::vector<MPI_Request> send_requests_, receive_requests_;
};

class Exchange {
 public:
  Exchange(const Team &team, Crew &crew, const Neighbours &neighbours)
      : crew_(crew), out_(neighbours.sends.total_bytes()), in_(neighbours.receives.total_bytes()) {
    for (std::size_t thread = 0; thread < static_cast<std::size_t>(crew.size()); ++thread)
      shares_.emplace_back(team, neighbours.sends.of_thread(thread), neighbours.receives.of_thread(thread), out_.data(),
                           in_.data());
  }

  // Each thread writes the data it will send, as an application thread would, and then stands by.
  void write_messages(int iteration) {
    crew_.run([&](int thread) { share(thread).write(iteration); }, Crew::Then::stand_by);
  }

  void run() {
    // Called directly: the crew's call to one thread takes 30 ns, which is 3 % of an exchange of one message.
    if (shares_.size() == 1) shares_.front().run();
    else crew_.run([&](int thread) { share(thread).run(); });
  }

  bool received(int iteration) const {
    for (const Share &share : shares_) {
      if (!share.received(iteration)) return false;
    }
    return true;
  }

 private:
  Share &share(int thread) { return shares_[static_cast<std::size_t>(thread)]; }

  Crew &crew_;
  Buffer out_, in_;
  std::vector<Share> shares_;
};

void accept_any_team(const Team &) {}

void measure(const Task &task) {
  std::vector<Exchange> stages;
  for (const Neighbours &neighbours : find_neighbours(task)) stages.emplace_back(task.team, task.crew, neighbours);
  Operation operation;
  operation.prepare = [&](int iteration) {
    for (Exchange &stage : stages) stage.write_messages(iteration);
  };
  operation.run = [&] {
    for (Exchange &stage : stages) stage.run();
  };
  operation.keep_rank_times = true;
  operation.reduction = Reduction::slowest_from_first;
  const Series series = task.sampler.take(operation);
  const int last = task.sampler.last_iteration();
  const bool validated = std::all_of(stages.begin(), stages.end(), [&](const Exchange &stage) { return stage.received(last); });
  task.sampler.write("exchange", "exchange", task.point, series, operation, validated);
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, accept_any_team, measure); }
