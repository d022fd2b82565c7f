// The lowest ranks of the nodes exchange readings; rank 0 gathers them and fits the lines.
#include "harness/clocks/clock_sync.hpp"

#include <algorithm>
#include <cmath>

#include "harness/clocks/test_clock.hpp"
#include "harness/machine/clock.hpp"

namespace earlybird {

namespace {

// Each burst gives one point, its shortest exchange. The last bursts are used for the residual only; there is more than
// one because all exchanges of a burst may have waited for a core.
constexpr std::size_t bursts_to_fit = 4, bursts_to_check = 2, num_bursts = bursts_to_fit + bursts_to_check;
constexpr std::size_t exchanges_per_burst = 10;
constexpr std::size_t numbers_per_point = 3;

// The node of each rank, identified by the lowest rank of the node.
std::vector<int> node_leaders(const Team &team) {
  MPI_Comm node;
  MPI_Comm_split_type(team.comm(), MPI_COMM_TYPE_SHARED, team.rank(), MPI_INFO_NULL, &node);
  int lowest = team.rank();
  MPI_Bcast(&lowest, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  std::vector<int> leaders(static_cast<std::size_t>(team.size()));
  MPI_Allgather(&lowest, 1, MPI_INT, leaders.data(), 1, MPI_INT, team.comm());
  return leaders;
}

// Assigns the ranks of one machine in turn to `count` simulated nodes, for tests.
std::vector<int> simulated_leaders(const Team &team, std::size_t count) {
  std::vector<int> leaders;
  for (int r = 0; r < team.size(); ++r) leaders.push_back(r % static_cast<int>(count));
  return leaders;
}

std::size_t count_distinct(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

}  // namespace

ClockSync::ClockSync(Team &team, double (*read_s)()) : team_(team), read_s_(read_s) {
  std::vector<int> leaders = node_leaders(team);
  const std::vector<TestClock> simulated = test_clocks();
  if (!simulated.empty() && count_distinct(leaders) != simulated.size()) leaders = simulated_leaders(team, simulated.size());
  for (int r = 0; r < team.size(); ++r) {
    const int leader = leaders[static_cast<std::size_t>(r)];
    if (leader == r) {
      nodes_.emplace_back();
      nodes_.back().leader = r;
    }
    const auto same = [&](const Node &node) { return node.leader == leader; };
    node_of_rank_.push_back(static_cast<std::size_t>(std::find_if(nodes_.begin(), nodes_.end(), same) - nodes_.begin()));
  }
  if (!simulated.empty()) {
    const TestClock &own = simulated[node_of_rank_[static_cast<std::size_t>(team.rank())]];
    set_stamp_clock(own.offset_s, own.drift);
  }
}

// The node number without its highest bit, so that every node is at most log2 exchanges from the first.
std::size_t ClockSync::parent(std::size_t node) {
  std::size_t bit = 1;
  while (bit * 2 <= node) bit *= 2;
  return node - bit;
}

void ClockSync::answer(int leader) {
  for (std::size_t k = 0; k < num_bursts * exchanges_per_burst; ++k) {
    team_.receive(leader);
    team_.send(read_s_(), leader);
  }
}

std::vector<ClockPoint> ClockSync::ask(int leader) {
  std::vector<ClockPoint> points;
  for (std::size_t burst = 0; burst < num_bursts; ++burst) {
    std::vector<ClockPoint> burst_points;
    for (std::size_t k = 0; k < exchanges_per_burst; ++k) {
      const double sent_s = read_s_();
      team_.send(sent_s, leader);
      const double other_s = team_.receive(leader);
      const double received_s = read_s_();
      burst_points.push_back({sent_s + (received_s - sent_s) / 2, other_s, received_s - sent_s});
    }
    points.push_back(shortest(burst_points));
  }
  return points;
}

// This rank's comparisons of its node's clock with the parent's; empty if the rank or its node does not ask.
std::vector<ClockPoint> ClockSync::exchange() {
  const std::size_t own = node_of_rank_[static_cast<std::size_t>(team_.rank())];
  if (nodes_[own].leader != team_.rank()) return {};
  std::vector<ClockPoint> points;
  if (own > 0) points = ask(nodes_[parent(own)].leader);
  for (std::size_t child = own + 1; child < nodes_.size(); ++child) {
    if (parent(child) == own) answer(nodes_[child].leader);
  }
  return points;
}

// Parents have lower numbers, so their lines are already fitted.
void ClockSync::fit_line(std::size_t number) {
  Node &node = nodes_[number];
  const ClockLine &from_parent = nodes_[parent(number)].to_reference;
  const auto checks = node.now.begin() + bursts_to_fit;
  const std::vector<ClockPoint> fitted(node.now.begin(), checks);
  round_trip_s_ = std::max(round_trip_s_, mean_round_trip_s(fitted));
  if (!node.before.empty()) round_trip_s_ = std::max(round_trip_s_, mean_round_trip_s(node.before));
  std::vector<ClockPoint> points = node.before;
  points.insert(points.end(), fitted.begin(), fitted.end());
  for (ClockPoint &point : points) point.other_s = from_parent.other_s(point.other_s);
  node.to_reference = fit_clock_line(points);
  const ClockPoint check = shortest({checks, node.now.end()});
  const double difference_s = node.to_reference.other_s(check.own_s) - from_parent.other_s(check.other_s);
  residual_s_ = std::max(residual_s_, std::abs(difference_s));
}

void ClockSync::compare() {
  std::vector<double> readings;
  for (const ClockPoint &point : exchange()) readings.insert(readings.end(), {point.own_s, point.other_s, point.round_trip_s});
  readings.resize(num_bursts * numbers_per_point);
  const std::vector<double> all = team_.gather(readings);
  residual_s_ = round_trip_s_ = 0;
  for (std::size_t number = 1; team_.rank() == 0 && number < nodes_.size(); ++number) {
    Node &node = nodes_[number];
    node.before = std::move(node.now);
    node.now.clear();
    const double *own = &all[static_cast<std::size_t>(node.leader) * readings.size()];
    for (std::size_t k = 0; k < readings.size(); k += numbers_per_point) node.now.push_back({own[k], own[k + 1], own[k + 2]});
    fit_line(number);
  }
}

double ClockSync::reference_s(int rank, double stamp_s) const { return line(rank).other_s(stamp_s); }

}  // namespace earlybird
