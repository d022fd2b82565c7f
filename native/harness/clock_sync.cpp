// Question and answer between the lowest ranks of nodes; rank 0 gathers what they saw and draws the lines.
#include "harness/clock_sync.hpp"

#include <algorithm>
#include <cmath>

#include "harness/clock.hpp"
#include "harness/test_clock.hpp"

namespace earlybird {

namespace {

// Each burst gives one point, the shortest of its exchanges. The last ones are for the residual alone: of a single one
// all exchanges may have waited for a core.
constexpr std::size_t bursts_to_draw = 4, bursts_to_check = 2, num_bursts = bursts_to_draw + bursts_to_check;
constexpr std::size_t exchanges_per_burst = 10;
constexpr std::size_t numbers_per_point = 3;

// The node of each rank, by the lowest rank of each.
std::vector<int> leaders_by_machine(const Team &team) {
  MPI_Comm node;
  MPI_Comm_split_type(team.comm(), MPI_COMM_TYPE_SHARED, team.rank(), MPI_INFO_NULL, &node);
  int lowest = team.rank();
  MPI_Bcast(&lowest, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  std::vector<int> leaders(static_cast<std::size_t>(team.size()));
  MPI_Allgather(&lowest, 1, MPI_INT, leaders.data(), 1, MPI_INT, team.comm());
  return leaders;
}

// The ranks of one machine dealt out to `count` nodes that tests pretend.
std::vector<int> leaders_pretended(const Team &team, std::size_t count) {
  std::vector<int> leaders;
  for (int r = 0; r < team.size(); ++r) leaders.push_back(r % static_cast<int>(count));
  return leaders;
}

std::size_t count_distinct(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return static_cast<std::size_t>(std::unique(values.begin(), values.end()) - values.begin());
}

}  // namespace

ClockSync::ClockSync(Team &team) : team_(team) {
  std::vector<int> leaders = leaders_by_machine(team);
  const std::vector<TestClock> pretended = test_clocks();
  if (!pretended.empty() && count_distinct(leaders) != pretended.size())
    leaders = leaders_pretended(team, pretended.size());
  for (int r = 0; r < team.size(); ++r) {
    const int leader = leaders[static_cast<std::size_t>(r)];
    if (leader == r) {
      nodes_.emplace_back();
      nodes_.back().leader = r;
    }
    const auto same = [&](const Node &node) { return node.leader == leader; };
    node_of_rank_.push_back(static_cast<std::size_t>(std::find_if(nodes_.begin(), nodes_.end(), same) - nodes_.begin()));
  }
  if (!pretended.empty()) {
    const TestClock &own = pretended[node_of_rank_[static_cast<std::size_t>(team.rank())]];
    set_stamp_clock(own.offset_s, own.drift);
  }
}

// The node without the highest bit of its number, so that every node is at most log2 exchanges from the first.
std::size_t ClockSync::parent(std::size_t node) {
  std::size_t bit = 1;
  while (bit * 2 <= node) bit *= 2;
  return node - bit;
}

void ClockSync::answer(int leader) {
  for (std::size_t k = 0; k < num_bursts * exchanges_per_burst; ++k) {
    team_.receive(leader);
    team_.send(stamp_s(), leader);
  }
}

std::vector<ClockPoint> ClockSync::ask(int leader) {
  std::vector<ClockPoint> points;
  for (std::size_t burst = 0; burst < num_bursts; ++burst) {
    std::vector<ClockPoint> tried;
    for (std::size_t k = 0; k < exchanges_per_burst; ++k) {
      const double asked_s = stamp_s();
      team_.send(asked_s, leader);
      const double other_s = team_.receive(leader);
      const double answered_s = stamp_s();
      tried.push_back({asked_s + (answered_s - asked_s) / 2, other_s, answered_s - asked_s});
    }
    points.push_back(shortest(tried));
  }
  return points;
}

// What this rank saw of its node's clock against the parent's; nothing where the rank or its node does not ask.
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

// Parents have lower numbers, so theirs is drawn already.
void ClockSync::draw_line(std::size_t number) {
  Node &node = nodes_[number];
  const ClockLine &from_parent = nodes_[parent(number)].to_reference;
  const auto checks = node.now.begin() + bursts_to_draw;
  const std::vector<ClockPoint> drawn(node.now.begin(), checks);
  round_trip_s_ = std::max(round_trip_s_, mean_round_trip_s(drawn));
  if (!node.before.empty()) round_trip_s_ = std::max(round_trip_s_, mean_round_trip_s(node.before));
  std::vector<ClockPoint> points = node.before;
  points.insert(points.end(), drawn.begin(), drawn.end());
  for (ClockPoint &point : points) point.other_s = from_parent.other_s(point.other_s);
  node.to_reference = fit_clock_line(points);
  const ClockPoint fresh = shortest({checks, node.now.end()});
  const double apart_s = node.to_reference.other_s(fresh.own_s) - from_parent.other_s(fresh.other_s);
  residual_s_ = std::max(residual_s_, std::abs(apart_s));
}

void ClockSync::compare() {
  std::vector<double> told;
  for (const ClockPoint &point : exchange()) told.insert(told.end(), {point.own_s, point.other_s, point.round_trip_s});
  told.resize(num_bursts * numbers_per_point);
  const std::vector<double> all = team_.gather(told);
  residual_s_ = round_trip_s_ = 0;
  for (std::size_t number = 1; team_.rank() == 0 && number < nodes_.size(); ++number) {
    Node &node = nodes_[number];
    node.before = std::move(node.now);
    node.now.clear();
    const double *own = &all[static_cast<std::size_t>(node.leader) * told.size()];
    for (std::size_t k = 0; k < told.size(); k += numbers_per_point) node.now.push_back({own[k], own[k + 1], own[k + 2]});
    draw_line(number);
  }
}

double ClockSync::reference_s(int rank, double stamp_s) const {
  return nodes_[node_of_rank_[static_cast<std::size_t>(rank)]].to_reference.other_s(stamp_s);
}

}  // namespace earlybird
