// Test program: synchronizes the clocks of its ranks several times and prints
// "rank stamp_s reference_s residual_s round_trip_s" for readings in between. Usage: clock_sync_check ROUNDS PAUSE_S, with
// clocks from EARLYBIRD_TEST_CLOCK.
#include <cstdio>
#include <string>

#include "harness/clocks/clock_sync.hpp"
#include "harness/machine/clock.hpp"
#include "harness/text/refuse.hpp"

using namespace earlybird;

int main(int argc, char **argv) {
  if (argc != 3) refuse("clock_sync_check needs ROUNDS and PAUSE_S");
  const int rounds = std::stoi(argv[1]);
  const double pause_s = std::stod(argv[2]);
  MPI_Init(&argc, &argv);
  {
    Team team(MPI_COMM_WORLD);
    team.set_oversubscribed(true);
    ClockSync clocks(team);
    clocks.compare();
    for (int round = 0; round < rounds; ++round) {
      const double at_once_s = stamp_s();
      sleep_until(now_s() + pause_s);
      const double later_s = stamp_s();
      clocks.compare();
      const std::vector<double> all = team.gather(std::vector<double>{at_once_s, later_s});
      for (std::size_t k = 0; k < all.size(); ++k) {
        const int rank = static_cast<int>(k / 2);
        std::printf("%d %.17g %.17g %.17g %.17g\n", rank, all[k], clocks.reference_s(rank, all[k]), clocks.residual_s(),
                    clocks.round_trip_s());
      }
    }
  }
  MPI_Finalize();
}
