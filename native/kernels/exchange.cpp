// Exchange: Algorithm 2 of Thune et al. 2023, the messages of a pattern file (int64 triples src, dst, bytes). Every rank
// posts its sends, then its receives, waits for the sends, then for the receives. Every rank's time is kept, from its own
// start or, if ranks share cores, from the start of the first rank. With several threads, the messages of a rank are
// assigned to its threads in turn, and each thread does the same with its share.
//
// A point with `stages`, such as 12+5+12, has several exchanges, each of as many rows of the pattern. A rank begins the next
// one when its messages of the one before are complete, as if it forwarded what it received.
//
// A point with `packing` has messages of doubles in a layout, which each rank packs and unpacks in the timed region as
// `packing_by` says.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel_main.hpp"
#include "harness/messages/buffer.hpp"
#include "harness/messages/data_check.hpp"
#include "harness/request/pattern.hpp"
#include "harness/text/names.hpp"
#include "harness/text/refuse.hpp"
#include "kernels/packed/packed_data.hpp"

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

// How messages get their data from memory and back: from a contiguous buffer (none), or from doubles of a layout, which are
// packed and unpacked in the timed region: by the program with MPI_Pack or a loop, or by the MPI, which sends a datatype.
enum class Packer { none, mpi, loop, datatype };

struct Packing {
  Packer packer = Packer::none;
  DataLayout layout = DataLayout::contiguous;
};

Packing packing_of(const Point &point) {
  if (!point.has("packing")) return {};
  static const std::map<std::string, Packer> known = {{"mpi", Packer::mpi}, {"loop", Packer::loop}, {"datatype", Packer::datatype}};
  const auto found = known.find(point.text("packing_by"));
  if (found == known.end()) refuse("the request gives packing_by=" + point.text("packing_by") + "; give one of " + names_of(known));
  return {found->second, data_layout_of(point)};
}

// The doubles of each message of one direction; none for messages without data. A message carries whole doubles.
std::vector<std::unique_ptr<PackedData>> doubles_of(MPI_Comm comm, const Packing &packing, const std::vector<Message> &messages) {
  std::vector<std::unique_ptr<PackedData>> all;
  for (const Message &message : messages) {
    const auto count = static_cast<int>((message.size_bytes + sizeof(double) - 1) / sizeof(double));
    all.push_back(count > 0 ? std::make_unique<PackedData>(comm, packing.layout, count) : nullptr);
  }
  return all;
}

// The messages of one thread, contiguous in the buffers of the rank.
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

// The messages of one thread that are packed.
class PackedShare {
 public:
  PackedShare(const Team &team, const Packing &packing, std::vector<Message> sends, std::vector<Message> receives)
      : comm_(team.comm()),
        rank_(team.rank()),
        packer_(packing.packer),
        sends_(std::move(sends)),
        receives_(std::move(receives)),
        sent_(doubles_of(comm_, packing, sends_)),
        received_(doubles_of(comm_, packing, receives_)),
        out_(buffers_of(sent_)),
        in_(buffers_of(received_)),
        send_requests_(sends_.size()),
        receive_requests_(receives_.size()) {}

  void write(int iteration) {
    for (std::size_t k = 0; k < sends_.size(); ++k) {
      if (sent_[k]) sent_[k]->write(content_key(rank_, sends_[k].number, iteration));
    }
  }

  // As the share of contiguous messages; each message is packed before it is sent, and unpacked after all have arrived.
  void run() {
    for (std::size_t k = 0; k < sends_.size(); ++k) {
      if (sent_[k] && packer_ == Packer::mpi) sent_[k]->pack(out_[k].data());
      if (sent_[k] && packer_ == Packer::loop) sent_[k]->pack_by_loop(out_[k].data());
      const Data data = data_of(sent_[k].get(), out_[k]);
      MPI_Isend(data.address, data.count, data.type, sends_[k].peer, sends_[k].tag, comm_, &send_requests_[k]);
    }
    for (std::size_t k = 0; k < receives_.size(); ++k) {
      const Data data = data_of(received_[k].get(), in_[k]);
      MPI_Irecv(data.address, data.count, data.type, receives_[k].peer, receives_[k].tag, comm_, &receive_requests_[k]);
    }
    for (MPI_Request &request : send_requests_) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (MPI_Request &request : receive_requests_) MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (std::size_t k = 0; k < receives_.size(); ++k) {
      if (received_[k] && packer_ == Packer::mpi) received_[k]->unpack(in_[k].data());
      if (received_[k] && packer_ == Packer::loop) received_[k]->unpack_by_loop(in_[k].data());
    }
  }

  bool received(int iteration) const {
    for (std::size_t k = 0; k < receives_.size(); ++k) {
      if (received_[k] && !received_[k]->holds(content_key(receives_[k].peer, receives_[k].number, iteration))) return false;
    }
    return true;
  }

 private:
  // The arguments of a send or of a receive.
  struct Data {
    void *address;
    int count;
    MPI_Datatype type;
  };

  Data data_of(PackedData *doubles, Buffer &packed) const {
    if (doubles == nullptr) return {packed.data(), 0, MPI_DOUBLE};
    if (packer_ == Packer::datatype) return {doubles->data(), 1, doubles->type()};
    if (packer_ == Packer::loop) return {packed.data(), doubles->count(), MPI_DOUBLE};
    return {packed.data(), doubles->packed_bytes(), MPI_PACKED};
  }

  std::vector<Buffer> buffers_of(const std::vector<std::unique_ptr<PackedData>> &all) const {
    std::vector<Buffer> buffers;
    for (const auto &doubles : all)
      buffers.emplace_back(doubles && packer_ != Packer::datatype ? static_cast<std::size_t>(doubles->packed_bytes()) : 0);
    return buffers;
  }

  MPI_Comm comm_;
  int rank_;
  Packer packer_;
  std::vector<Message> sends_, receives_;
  std::vector<std::unique_ptr<PackedData>> sent_, received_;
  std::vector<Buffer> out_, in_;
  std::vector<MPI_Request> send_requests_, receive_requests_;
};

template <class Part>
class Exchange {
 public:
  template <class MakePart>
  Exchange(Crew &crew, const MakePart &make_part) : crew_(crew) {
    for (std::size_t thread = 0; thread < static_cast<std::size_t>(crew.size()); ++thread) parts_.push_back(make_part(thread));
  }

  // Each thread writes the data it will send, as an application thread would, and then stands by.
  void write_messages(int iteration) {
    crew_.run([&](int thread) { part(thread).write(iteration); }, Crew::Then::stand_by);
  }

  void run() {
    // Called directly: the crew's call to one thread takes 30 ns, which is 3 % of an exchange of one message.
    if (parts_.size() == 1) parts_.front().run();
    else crew_.run([&](int thread) { part(thread).run(); });
  }

  bool received(int iteration) const {
    for (const Part &part : parts_) {
      if (!part.received(iteration)) return false;
    }
    return true;
  }

 private:
  Part &part(int thread) { return parts_[static_cast<std::size_t>(thread)]; }

  Crew &crew_;
  std::vector<Part> parts_;
};

void accept_any_team(const Team &) {}

// Measures exchanges, one after the other.
template <class Part>
void measure_stages(const Task &task, std::vector<Exchange<Part>> &stages) {
  Operation operation;
  operation.prepare = [&](int iteration) {
    for (Exchange<Part> &stage : stages) stage.write_messages(iteration);
  };
  operation.run = [&] {
    for (Exchange<Part> &stage : stages) stage.run();
  };
  operation.keep_rank_times = true;
  operation.reduction = Reduction::slowest_from_first;
  const Series series = task.sampler.take(operation);
  const int last = task.sampler.last_iteration();
  const bool validated = std::all_of(stages.begin(), stages.end(),
                                     [&](const Exchange<Part> &stage) { return stage.received(last); });
  task.sampler.write("exchange", "exchange", task.point, series, operation, validated);
}

void measure(const Task &task) {
  const Packing packing = packing_of(task.point);
  const std::vector<Neighbours> neighbours = find_neighbours(task);
  if (packing.packer != Packer::none) {
    std::vector<Exchange<PackedShare>> stages;
    for (const Neighbours &each : neighbours) {
      stages.emplace_back(task.crew, [&](std::size_t thread) {
        return PackedShare(task.team, packing, each.sends.of_thread(thread), each.receives.of_thread(thread));
      });
    }
    measure_stages(task, stages);
    return;
  }
  std::vector<Buffer> buffers;  // of all sends and of all receives of each stage
  std::vector<Exchange<Share>> stages;
  for (const Neighbours &each : neighbours) {
    std::byte *const out = buffers.emplace_back(each.sends.total_bytes()).data();
    std::byte *const in = buffers.emplace_back(each.receives.total_bytes()).data();
    stages.emplace_back(task.crew, [&](std::size_t thread) {
      return Share(task.team, each.sends.of_thread(thread), each.receives.of_thread(thread), out, in);
    });
  }
  measure_stages(task, stages);
}

}  // namespace

int main(int argc, char **argv) { return kernel_main(argc, argv, accept_any_team, measure); }
