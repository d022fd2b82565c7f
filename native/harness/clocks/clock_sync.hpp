// Converts the clocks of several nodes to the clock of rank 0's node.
//
// As in HCA3 (Hunold and Carpen-Amarie 2018), each node exchanges readings with its parent in a tree of log2 rounds. Of
// several exchanges the one with the shortest round trip is used, and a line by least squares converts the node's clock.
// Unlike in HCA3, the line is not extrapolated into the measurement: it is fitted to comparisons before and after it. An
// extrapolated drift from a short time before would have to be far more accurate than the offset is.
//
// No exchange reveals by how much one direction of the network is slower than the other: every offset contains half of
// the difference, which is at most half the shortest round trip. The drift is assumed constant between two comparisons.
#pragma once

#include <vector>

#include "harness/clocks/clock_line.hpp"
#include "harness/machine/clock.hpp"
#include "harness/team/team.hpp"

namespace earlybird {

class ClockSync {
 public:
  // Collective. Determines which ranks share a node, and so a clock. `read_s` is the clock to compare.
  explicit ClockSync(Team &team, double (*read_s)() = stamp_s);

  // Collective, outside of timed regions. The nodes compare their clocks.
  void compare();

  // On rank 0: the reading of rank 0's clock when the clock of `rank` read `stamp_s`, at a time between the last two calls
  // of compare() (or shortly before or after).
  double reference_s(int rank, double stamp_s) const;

  // On rank 0: the line that converts the clock of `rank` to rank 0's, as of the last two calls of compare().
  const ClockLine &line(int rank) const { return nodes_[node_of_rank_[static_cast<std::size_t>(rank)]].to_reference; }

  // On rank 0: the largest deviation, over all nodes, of the check exchanges (which are not fitted) from the lines of the
  // last compare().
  double residual_s() const { return residual_s_; }

  // On rank 0: the mean round trip of the fitted exchanges, before or after, of the node where it was longest. The error
  // of a node's line relative to its parent's is at most half of it.
  double round_trip_s() const { return round_trip_s_; }

 private:
  struct Node {
    int leader = 0;                       // its lowest rank; only this rank communicates
    std::vector<ClockPoint> before, now;  // of the previous and of the last compare(), own clock to the parent's
    ClockLine to_reference;
  };

  static std::size_t parent(std::size_t node);
  std::vector<ClockPoint> exchange();
  std::vector<ClockPoint> ask(int leader);
  void answer(int leader);
  void fit_line(std::size_t number);

  Team &team_;
  double (*read_s_)();
  std::vector<std::size_t> node_of_rank_;
  std::vector<Node> nodes_;
  double residual_s_ = 0, round_trip_s_ = 0;
};

}  // namespace earlybird
