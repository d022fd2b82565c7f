"""How well the message costs that libearlybird measures in MPI_Init predict what transfers take.

Each cell is a buffer all of whose partitions are ready at once, sent in a fixed number of equal segments. The
prediction is the planner's, of the costs that the same launch has measured. The table has the ratio of the
predicted and the measured time, as medians over launches.
"""

import argparse
import ctypes
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.commands import chosen_flavours, say
from earlybird.data.message_costs import MAX_PROTOCOLS
from earlybird.data.units import format_bytes, format_seconds
from earlybird.machine.flavours import Flavour
from earlybird.present.render.terminal import print_rows
from earlybird.toolchain.build import library_path, native_sources, require_library
from tests import core_library
from tests.partitioned import run_ranks

CELLS = ((512, 32), (8192, 4), (8192, 32), (131072, 4), (131072, 32), (1 << 20, 4), (1 << 20, 32))
CELLS += ((1 << 24, 4), (1 << 24, 32))
NUMBERS = (1, 2, 4, 8, 16, 32)
LAUNCHES = 3
# What is asked of the geometric mean of the larger of each ratio and its inverse.
TARGET = 1.15

PROGRAM = r"""
#include "earlybird.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times, int num) {
  qsort(times, num, sizeof *times, by_value);
  return times[num / 2];
}

int main(int argc, char **argv) {
  static double times[1000];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double ack_s = 0;
  for (int a = 1; a + 2 < argc; a += 3) {
    const long bytes = atol(argv[a]);
    const int partitions = atoi(argv[a + 1]);
    MPI_Info info;
    MPI_Request request;
    MPI_Info_create(&info);
    MPI_Info_set(info, EARLYBIRD_INFO_SEGMENTS, argv[a + 2]);
    char *data = malloc(bytes);
    memset(data, 1, bytes);
    if (rank == 0)
      MPI_Psend_init(data, partitions, bytes / partitions, MPI_BYTE, 1, a, MPI_COMM_WORLD, info, &request);
    else
      MPI_Precv_init(data, partitions, bytes / partitions, MPI_BYTE, 0, a, MPI_COMM_WORLD, info, &request);
    const int starts = bytes > 4 << 20 ? 70 : 300, first = bytes > 4 << 20 ? 50 : 200;
    for (int s = 0; s < starts; s++) {
      MPI_Start(&request);
      if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double begin = MPI_Wtime();
        MPI_Pready_range(0, partitions - 1, request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 9998, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (s >= first) times[s - first] = MPI_Wtime() - begin;
      } else {
        MPI_Send(NULL, 0, MPI_BYTE, 0, 9999, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 9998, MPI_COMM_WORLD);
      }
    }
    if (rank == 0) {
      const double taken = median(times, starts - first);
      for (int k = 0; k < 300; k++) {
        const double begin = MPI_Wtime();
        MPI_Send(NULL, 0, MPI_BYTE, 1, 9997, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 9997, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        times[k] = MPI_Wtime() - begin;
      }
      ack_s = median(times, 300) / 2;
      printf("took %s %s %s %.9f\n", argv[a], argv[a + 1], argv[a + 2], taken - ack_s);
    } else {
      for (int k = 0; k < 300; k++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 9997, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 9997, MPI_COMM_WORLD);
      }
    }
    MPI_Request_free(&request);
    MPI_Info_free(&info);
    free(data);
  }
  MPI_Finalize();
  return 0;
}
"""


def costs_of(text: str) -> core_library.Cost:
    """The costs within a node in a file that libearlybird has kept."""
    protocols = re.search(r"^costs intra_node .*protocols=(\S+)$", text, re.MULTILINE)[1].split(",")
    assert len(protocols) <= MAX_PROTOCOLS
    return core_library.cost_of(
        [(int(size), *map(float, rest)) for size, *rest in (one.split(":") for one in protocols)]
    )


def _launch(flavour: Flavour, program: Path, core: ctypes.CDLL) -> dict[tuple[int, int, int], tuple]:
    cells = [(size, parts, num) for size, parts in CELLS for num in NUMBERS if num <= parts]
    words = [str(value) for cell in cells for value in cell]
    library = library_path(flavour)
    command = ["env", f"LD_PRELOAD={library}", str(program), *words]
    with tempfile.TemporaryDirectory() as kept:
        status, output = run_ranks(flavour, 2, command, {"EARLYBIRD_CACHE": kept}, 120)
        if status != 0:
            raise SystemExit(f"the program ended with status {status}: {output[-2000:]}")
        cost = costs_of("".join(path.read_text() for path in Path(kept).iterdir()))
    result = {}
    for size, parts, num, taken_s in re.findall(r"^took (\d+) (\d+) (\d+) (\S+)$", output, re.MULTILINE):
        predicted_s = core_library.predict_s(core, cost, [0.0] * int(num), [int(size) // int(num)] * int(num))
        result[int(size), int(parts), int(num)] = float(taken_s), predicted_s
    return result


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, and print a table and the mean for each MPI."""
    parser = argparse.ArgumentParser(prog="python -m bench partitioned-costs", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--launches", type=int, default=LAUNCHES, help=f"of each MPI; default {LAUNCHES}")
    options = parser.parse_args(list(arguments))
    misses = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        core = core_library.compile_core(folder)
        (folder / "transfers.c").write_text(PROGRAM)
        for flavour in chosen_flavours(options.mpi):
            require_library(flavour)
            program = folder / f"transfers-{flavour.family}"
            header = f"-I{native_sources() / 'include'}"
            command = [flavour.mpicc, "-O2", header, folder / "transfers.c", "-o", program]
            subprocess.run(command, env=flavour.environment(), check=True)
            cells = defaultdict(list)
            for launch in range(options.launches):
                for cell, times in _launch(flavour, program, core).items():
                    cells[cell].append(times)
                say(f"launch {launch + 1} of {options.launches}, {flavour.name}")
            misses += _report(flavour.name, cells)
    return 1 if misses else 0


def _report(mpi: str, cells: dict[tuple[int, int, int], list[tuple[float, float]]]) -> bool:
    rows, errors = [], []
    for (size, parts, num), launches in cells.items():
        ratios = [predicted_s / taken_s for taken_s, predicted_s in launches]
        ratio = statistics.median(ratios)
        errors.append(max(ratio, 1 / ratio))
        taken_s = statistics.median(taken_s for taken_s, _ in launches)
        rows.append(
            [format_bytes(size), str(parts), str(num), format_seconds(taken_s), f"{ratio:.2f}",
             f"{min(ratios):.2f} .. {max(ratios):.2f}"]
        )  # fmt: skip
    print(f"\n{mpi}: predicted over measured times, medians over launches")
    print_rows(["size", "partitions", "segments", "took", "predicted/took", "from .. to"], rows)
    mean = statistics.geometric_mean(errors)
    print(f"geometric mean of the errors {mean:.3f} (target {TARGET}), largest {max(errors):.2f}")
    return mean > TARGET


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
