// Every style is checked after the measurement with the same requests: libearlybird has adapted them by then.
#include "kernels/motifs/motif.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "harness/text/json.hpp"
#include "harness/text/refuse.hpp"

namespace earlybird {

namespace {

constexpr std::size_t num_durations = 3;  // computation, communication, waiting

// By iteration, then by rank: the three durations to a tenth of a thousandth.
std::string json_split(const std::vector<double> &durations_s, int num_ranks) {
  std::string json = "[";
  const std::size_t width = num_durations * static_cast<std::size_t>(num_ranks);
  for (std::size_t k = 0; k < durations_s.size(); ++k) {
    char number[32];
    std::snprintf(number, sizeof number, "%.4g", durations_s[k]);
    if (k > 0) json += ", ";
    if (k % width == 0) json += '[';
    if (k % num_durations == 0) json += '[';
    json += number;
    if (k % num_durations == num_durations - 1) json += ']';
    if (k % width == width - 1) json += ']';
  }
  return json + "]";
}

// Of all ranks together; complete on rank 0 only.
Traffic sum_of_ranks(Team &team, const Traffic &own) {
  const std::vector<double> all = team.gather(std::vector<double>{own.bytes, own.messages, own.partitions});
  Traffic sum;
  for (std::size_t k = 0; k < all.size(); k += 3) sum += {all[k], all[k + 1], all[k + 2]};
  return sum;
}

std::vector<std::pair<std::string, std::string>> members_of(const Task &task, const Traffic &sent, const Series &series) {
  std::vector<std::pair<std::string, std::string>> members = {
      {"split_s", json_split(series.durations_s, task.team.size())},
      {"sent_bytes", json_number(sent.bytes)},
      {"messages", json_number(sent.messages)},
      {"seed", std::to_string(task.request.seed)},
  };
  if (sent.partitions > 0) members.emplace_back("partitions_sent", json_number(sent.partitions));
  return members;
}

}  // namespace

Traffic &Traffic::operator+=(const Traffic &other) {
  bytes += other.bytes;
  messages += other.messages;
  partitions += other.partitions;
  return *this;
}

Traffic traffic_of(const Style &style, const Edges &edges) {
  Traffic traffic;
  for (const Edge &edge : edges.sends) traffic.bytes += static_cast<double>(edge.chunk_bytes) * edge.num_chunks();
  traffic.messages = style.num_messages();
  traffic.partitions = style.num_partitions();
  return traffic;
}

int read_partitions(const Task &task, int most, const std::string &what, bool may_share) {
  const int partitions = task.point.integer("partitions", 1, most_chunks), threads = task.crew.size();
  const std::string given = "the request gives partitions=" + task.point.text("partitions");
  if (task.point.integer("threads") != threads)
    refuse("the request gives threads=" + task.point.text("threads") + " and its options threads=" + std::to_string(threads) +
           "; give the same");
  if (partitions % threads != 0 && (!may_share || threads % partitions != 0))
    refuse(given + " and there are " + std::to_string(threads) + " threads; give a multiple " + (may_share ? "or divisor " : "") +
           "of " + std::to_string(threads));
  if (partitions > most) refuse(given + " and a rank has " + std::to_string(most) + " " + what + "; give at most as many");
  return partitions;
}

bool read_yes(const Point &point, const std::string &key) {
  const std::string text = point.text(key);
  if (text != "yes" && text != "no") refuse("the request gives " + key + "=" + text + "; give yes or no");
  return text == "yes";
}

void measure_motif(const Task &task, const std::string &kernel,
                   const std::function<std::unique_ptr<Motif>(const StyleKind &)> &make) {
  std::vector<std::unique_ptr<Motif>> motifs;
  std::vector<Operation> operations;
  for (const std::string &name : task.request.methods) {
    const StyleKind kind = find_style(name);
    Motif &motif = *motifs.emplace_back(make(kind));
    Operation operation;
    operation.method = name;
    operation.settling = motif.runs_until(kind.settling);
    operation.prepare = [&motif, &task](int) { motif.prepare(task.sampler.round()); };
    operation.run = [&motif] { motif.run(); };
    operation.durations_s = [&motif]() -> const std::vector<double> & { return motif.split_s(); };
    operation.reduction = Reduction::slowest_from_first;
    operation.keep_rank_times = true;
    operations.push_back(operation);
  }
  if (operations.empty()) refuse(kernel + " needs methods, such as funnelled, persistent");

  const std::vector<Series> all = task.sampler.take(operations);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const bool correct = motifs[k]->is_correct();
    operations[k].extra_members = members_of(task, sum_of_ranks(task.team, motifs[k]->traffic()), all[k]);
    task.sampler.write(kernel, "step", task.point, all[k], operations[k], correct);
  }
  task.crew.run([](int) {});  // ends the spinning of idle threads
  // All ranks free communicators and requests in the order of creation.
  for (std::unique_ptr<Motif> &motif : motifs) motif.reset();
}

int motif_main(int argc, char **argv, const std::function<void(const Task &)> &measure) {
  const auto thread_level = [](const Request &request) -> int {
    const bool multiple = std::any_of(request.methods.begin(), request.methods.end(), needs_thread_multiple);
    return multiple || request.threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  };
  return kernel_main(argc, argv, [](const Team &) {}, measure, thread_level);
}

}  // namespace earlybird
