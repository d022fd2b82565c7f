// Comb: the halo exchange of Halo3D as the benchmark Comb has it, with many variables and up to 26 neighbours; its samples
// are named apart from those of Halo3D.
#include "kernels/motifs/halo.hpp"
#include "kernels/motifs/motif.hpp"

using namespace earlybird;

int main(int argc, char **argv) {
  return motif_main(argc, argv, [](const Task &task) { measure_halo(task, "comb"); });
}
