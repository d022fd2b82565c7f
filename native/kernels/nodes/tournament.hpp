// Round-robin tournaments: every pair of players meets once, in rounds of disjoint pairs.
#pragma once

namespace earlybird {

// The rounds of a tournament of `players`: one less than players if their number is even, else as many.
constexpr int num_rounds(int players) { return players % 2 == 0 ? players - 1 : players; }

// Whom `player` meets in `round`, by the circle method; itself if it pauses, which happens only with an odd number.
constexpr int opponent(int player, int round, int players) {
  const int rounds = num_rounds(players), last = rounds;  // the last of an even number of players stays in its place
  // The others stand on a circle of `rounds` places; in each round, places whose sum is the round's number meet.
  const int across = ((round - player) % rounds + rounds) % rounds;
  if (players % 2 != 0) return across;
  // Who would meet itself meets the last player.
  if (player != last) return across == player ? last : across;
  for (int other = 0; other < rounds; ++other) {
    if ((2 * other - round) % rounds == 0) return other;
  }
  return last;
}

}  // namespace earlybird
