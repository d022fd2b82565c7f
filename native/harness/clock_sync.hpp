// The clocks of several nodes on one scale: that of rank 0's node.
//
// As in HCA3 (Hunold and Carpen-Amarie 2018) the nodes ask one another in a tree of log2 rounds, each its parent; of
// several exchanges the one with the shortest round trip counts, and a line by least squares leads from the node's clock
// to the scale. Unlike there the line is not drawn on into what is measured, but from before it to after it: a drift
// found in a short time before would have to be far better known than an offset is.
//
// What no exchange can tell is by how much one direction of the network is slower than the other: half the difference is
// in every offset, and at most half the shortest round trip. Between two comparisons clocks are taken to drift evenly.
#pragma once

#include <vector>

#include "harness/clock_line.hpp"
#include "harness/team.hpp"

namespace earlybird {

class ClockSync {
 public:
  // Collective: finds out which ranks share a node, and so a clock.
  explicit ClockSync(Team &team);

  // Collective, outside of timed regions: the nodes compare their clocks.
  void compare();

  // On rank 0: what its clock showed when that of `rank` showed `stamp_s`, a moment between the last two calls of
  // compare() (a little before or after does no harm).
  double reference_s(int rank, double stamp_s) const;

  // On rank 0: by how much exchanges after the others, on which no line was drawn, disagree with the lines of the last
  // compare(): the largest of all nodes.
  double residual_s() const { return residual_s_; }

  // On rank 0: how long the exchanges took that the lines are drawn on, before or after, of the node where it was longest.
  // A node's line is off from its parent's by no more than half of it, whatever the network does.
  double round_trip_s() const { return round_trip_s_; }

 private:
  struct Node {
    int leader = 0;                       // its lowest rank, which alone asks and answers
    std::vector<ClockPoint> before, now;  // of the last compare() but one, and of the last, own clock to the parent's
    ClockLine to_reference;
  };

  static std::size_t parent(std::size_t node);
  std::vector<ClockPoint> exchange();
  std::vector<ClockPoint> ask(int leader);
  void answer(int leader);
  void draw_line(std::size_t number);

  Team &team_;
  std::vector<std::size_t> node_of_rank_;
  std::vector<Node> nodes_;
  double residual_s_ = 0, round_trip_s_ = 0;
};

}  // namespace earlybird
