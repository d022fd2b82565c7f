/* Does a segment arrive while its sender computes? partitioned_early BYTES SECONDS FILE prints `early` or `late`.
 *
 * Rank 0 makes the first of two partitions ready and calls no MPI until rank 1, which has it then, writes FILE, or until
 * the time is over. How fast anything is does not matter. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "report.h"

enum { PARTITIONS = 2, WARM_UPS = 2 };

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void rest(void) { nanosleep(&(struct timespec){0, 200000}, NULL); }

static bool compute_until(const char *path, double seconds) {
  const double end_s = now_s() + seconds;
  while (now_s() < end_s) {
    if (access(path, F_OK) == 0) return true;
    rest();
  }
  return false;
}

/* The first starts of a request send copies and open connections. */
static void transfer(struct side *side, uint64_t iteration, const char *path, double seconds) {
  int arrived = 0;
  side_prepare(side, iteration, 1);
  MPI(MPI_Start(&side->request));
  MPI(MPI_Barrier(MPI_COMM_WORLD));
  if (side->sends) {
    MPI(MPI_Pready(0, side->request));
    if (path) puts(compute_until(path, seconds) ? "early" : "late");
    MPI(MPI_Pready(1, side->request));
  } else {
    while (path && !arrived && !case_failed()) {
      MPI(MPI_Parrived(side->request, 0, &arrived));
      if (!arrived) rest();
    }
    const int file = path ? open(path, O_CREAT | O_WRONLY, 0600) : -1;
    EXPECT(!path || file >= 0, "cannot write the file");
    if (file >= 0) close(file);
  }
  MPI(MPI_Wait(&side->request, MPI_STATUS_IGNORE));
  if (!side->sends) side_check(side, iteration, 1);
}

int main(int argc, char **argv) {
  struct side side;
  int rank = 0;
  if (argc != 4 || MPI_Init(&argc, &argv) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) return 2;
  report_begin(MPI_COMM_WORLD);
  report_case_begin("segments_travel_while_the_sender_computes", 60);
  const struct shape shape = {PARTITIONS, atoi(argv[1]), MPI_BYTE};
  if (rank == 0) side_send_init(&side, shape, 1, 0, MPI_COMM_WORLD);
  else side_recv_init(&side, shape, 0, 0, MPI_COMM_WORLD);
  for (uint64_t i = 0; i < WARM_UPS; i++) transfer(&side, i, NULL, 0);
  transfer(&side, WARM_UPS, argv[3], atof(argv[2]));
  side_destroy(&side);
  const bool ok = report_case_end();
  return MPI_Finalize() == MPI_SUCCESS && ok ? 0 : 1;
}
