// Halo3D: ranks own blocks of a 3-D grid of cells, update them by a stencil and exchange ghost cells with their neighbours in
// each step. The styles of communication are measured interleaved; each is a class in motifs/.
#include "kernels/motifs/halo.hpp"
#include "kernels/motifs/motif.hpp"

using namespace earlybird;

int main(int argc, char **argv) {
  return motif_main(argc, argv, [](const Task &task) { measure_halo(task, "halo3d"); });
}
