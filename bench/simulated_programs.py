"""What `earlybird predict program` says of changes, against the programs run with them.

A program is recorded with all events and simulated as it was and with a change. Then the program runs plain
and changed by turns, unrecorded; the measured speed-up is the median of the ratios of the times from MPI_Init
to MPI_Finalize. Two tables: ranks that have a core each (two ranks, with the links of a virtual cluster), and
ranks that share cores (8 ranks on 4 virtual nodes: layouts, other MPIs, algorithms of collectives, and
partitions of halo3d and sweep3d). About 45 minutes for three MPIs.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.commands import EARLYBIRD, chosen_flavours, earlybird, say, virtual_cluster
from bench.program_checks import Check, announce, fitted_profile, measured_speed_up, report, settings_of
from earlybird.data.advice import Advice, Alternative, advice_from_json
from earlybird.data.files import write_json
from earlybird.data.schema import Estimate
from earlybird.data.simulated_program import SimulatedProgram, simulated_program_from_json
from earlybird.data.units import format_bytes
from earlybird.machine.flavours import Flavour, find_flavour

# All nodes share two cores: at higher rates these are the limit when every node sends.
NODES, RATE, FASTER = 4, "100mbit", "400mbit"
NARROW, WIDE = "2x1x4", "4x1x2"
PATTERNS = ("ring", "far", "random")
SIZES_BYTES = (64 << 10, 1 << 20)
OPERATIONS = ("bcast", "reduce", "allreduce")
COLLECTIVE_SIZES = "4KiB,64KiB,256KiB,1MiB"
ROUNDS, ITERATIONS = 5, 10
# Two ranks with a core each: steps of heat; steps, bytes and microseconds of work of the pipeline.
HEAT_STEPS, PIPELINE_STEPS, PIPELINE_BYTES, WORK_US = 60, 300, 20_000, 1000
APART, TOGETHER = "2x1x1", "1x1x2"
OWN_CORES, SHARED_CORES = "two ranks with a core each", "ranks that share cores"
LAYOUT, OTHER_MPI, COLLECTIVE = "layout", "mpi", "collective"
OWN_LAYOUT, OWN_RATE, OWN_WORK, OWN_BALANCE = "own-layout", "own-rate", "own-work", "own-balance"
KINDS = (OWN_LAYOUT, OWN_RATE, OWN_WORK, OWN_BALANCE, LAYOUT, OTHER_MPI, COLLECTIVE)
HEAT = Path(__file__).parents[1] / "examples/heat/heat.c"
# PROGRAM ring|far|random|bcast|reduce|allreduce|pipeline BYTES ITERATIONS [MICROSECONDS]: prints the seconds
# from MPI_Init to MPI_Finalize. A rank sleeps 2 ms in each iteration; of a pipeline, it works.
PROGRAM = r"""#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { MAX = 16 };
static int rank, ranks, peers, to[MAX], from[MAX], size_to[MAX], size_from[MAX];
static char *sent, *received;
static double work_us;
static void compute(void) {
  const struct timespec pause = {0, 2000000};
  nanosleep(&pause, NULL);
}
static void plan(const char *pattern, int bytes) {
  if (strcmp(pattern, "random") != 0) {
    const int apart = strcmp(pattern, "far") == 0 ? ranks / 2 : 1;
    for (peers = 0; peers < 2; peers++) {
      to[peers] = (rank + (peers ? ranks - apart : apart)) % ranks;
      from[peers] = (rank + (peers ? apart : ranks - apart)) % ranks;
      size_to[peers] = size_from[peers] = bytes;
    }
    return;
  }
  /* Three random permutations; every sender has a size of its own, from a quarter of BYTES up to BYTES. */
  unsigned seed = 20;
  for (peers = 0; peers < 3; peers++) {
    int order[MAX], size[MAX];
    for (int k = 0; k < ranks; k++) order[k] = k;
    for (int k = ranks - 1; k > 0; k--) {
      const int other = (int)((seed = seed * 1103515245u + 12345u) >> 16) % (k + 1), kept = order[k];
      order[k] = order[other];
      order[other] = kept;
    }
    for (int k = 0; k < ranks; k++) {
      seed = seed * 1103515245u + 12345u;
      size[k] = bytes / 4 + (int)((seed >> 8) % (unsigned)(3 * bytes / 4));
      if (order[k] == rank) from[peers] = k;
    }
    to[peers] = order[rank];
    size_to[peers] = size[rank];
    size_from[peers] = size[from[peers]];
  }
}
static void exchange(int bytes) {
  MPI_Request requests[2 * MAX];
  for (int k = 0; k < peers; k++)
    MPI_Irecv(received + (size_t)k * bytes, size_from[k], MPI_CHAR, from[k], k, MPI_COMM_WORLD, &requests[k]);
  compute();
  for (int k = 0; k < peers; k++)
    MPI_Isend(sent + (size_t)k * bytes, size_to[k], MPI_CHAR, to[k], k, MPI_COMM_WORLD, &requests[peers + k]);
  MPI_Waitall(2 * peers, requests, MPI_STATUSES_IGNORE);
}
static void call(const char *operation, int bytes) {
  const int count = bytes / (int)sizeof(double);
  compute();
  if (strcmp(operation, "bcast") == 0) MPI_Bcast(sent, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else if (strcmp(operation, "reduce") == 0)
    MPI_Reduce(sent, received, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  else MPI_Allreduce(sent, received, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
/* Each rank works on what the rank before it has sent, in alternating directions. */
static void pass_on(int iteration, int bytes) {
  const int step = iteration % 2 ? -1 : 1, before = rank - step, after = rank + step;
  MPI_Status status;
  if (before >= 0 && before < ranks) MPI_Recv(received, bytes, MPI_CHAR, before, 0, MPI_COMM_WORLD, &status);
  const double until = MPI_Wtime() + 1e-6 * work_us;
  while (MPI_Wtime() < until) {
  }
  if (after >= 0 && after < ranks) MPI_Send(sent, bytes, MPI_CHAR, after, 0, MPI_COMM_WORLD);
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 4 || ranks > MAX) MPI_Abort(MPI_COMM_WORLD, 2);
  const double begin = MPI_Wtime();
  const char *what = argv[1];
  const int bytes = atoi(argv[2]), iterations = atoi(argv[3]);
  const int exchanges = strcmp(what, "ring") == 0 || strcmp(what, "far") == 0 || strcmp(what, "random") == 0;
  work_us = argc > 4 ? atof(argv[4]) : 0;
  sent = calloc(3, (size_t)bytes);
  received = calloc(3, (size_t)bytes);
  if (exchanges) plan(what, bytes);
  for (int k = 0; k < iterations; k++)
    if (exchanges) exchange(bytes);
    else if (strcmp(what, "pipeline") == 0) pass_on(k, bytes);
    else call(what, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%.9g\n", MPI_Wtime() - begin);
  return MPI_Finalize();
}
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Simulate, run and print the tables."""
    options = _parser().parse_args(list(arguments))
    if options.rounds < 1:
        say(f"simulated-programs: --rounds is {options.rounds}; give 1 or more")
        return 2
    mpis = [flavour.name for flavour in chosen_flavours(options.mpi)]
    found: list[Check] = []
    try:
        with tempfile.TemporaryDirectory() as temporary, virtual_cluster(NODES, RATE) as cluster:
            folder = options.folder.resolve() if options.folder else Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            bench = _Bench(folder, cluster, mpis, options.rounds)
            for kind in options.check or KINDS:
                for check in bench.checks_of(kind):
                    found.append(check)
                    announce(check)
    finally:
        if found:
            report(found)
        # Also what was measured before a launch died or Ctrl-C.
        if options.json is not None and found:
            write_json(options.json, {"checks": [one.to_json() for one in found]})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench simulated-programs", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--check", action="append", choices=KINDS, help="repeat for several; default all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of runs; default {ROUNDS}")
    parser.add_argument(
        "--folder", type=Path, help="keep recordings and profiles; profiles there are used again"
    )
    parser.add_argument("--json", type=Path, help="write every check here")
    return parser


class _Bench:
    """The checks, and what they share: profiles are measured when first needed."""

    def __init__(self, folder: Path, cluster: str, mpis: Sequence[str], rounds: int):
        self.folder, self.cluster, self.mpis, self.rounds = folder, cluster, mpis, rounds
        self._recorded = 0

    def checks_of(self, kind: str) -> Iterator[Check]:
        checks: dict[str, Callable[[str], Iterator[Check]]] = {
            OWN_LAYOUT: self._own_layouts, OWN_RATE: self._own_rates, OWN_WORK: self._own_work,
            OWN_BALANCE: self._own_balance, LAYOUT: self._layouts, OTHER_MPI: self._other_mpis,
            COLLECTIVE: self._collectives,
        }  # fmt: skip
        for mpi in self.mpis:
            yield from checks[kind](mpi)

    def _own_layouts(self, mpi: str) -> Iterator[Check]:
        """Two ranks on two nodes, and on one."""
        for arguments, case in self._own_programs(mpi):
            plain = self._on_cluster(mpi, APART, arguments)
            changed = self._on_cluster(mpi, TOGETHER, arguments)
            predicted = self._predict(mpi, plain, "--to-layout", TOGETHER)
            yield self._check(OWN_LAYOUT, mpi, case, predicted, plain, changed, OWN_CORES)

    def _own_rates(self, mpi: str) -> Iterator[Check]:
        """Links of four times the rate."""
        times = float(FASTER.removesuffix("mbit")) / float(RATE.removesuffix("mbit"))
        with virtual_cluster(2, FASTER, suffix="-fast") as faster:
            for arguments, case in self._own_programs(mpi):
                plain = self._on_cluster(mpi, APART, arguments)
                changed = self._on_cluster(mpi, APART, arguments, faster)
                predicted = self._predict(mpi, plain, "--set", f"inter_node.bandwidth={times:g}x")
                yield self._check(OWN_RATE, mpi, case, predicted, plain, changed, OWN_CORES)

    def _own_work(self, mpi: str) -> Iterator[Check]:
        """Half the work in each step of a pipeline, on two nodes and on one."""
        program = self._program(mpi)
        for layout in (APART, TOGETHER):
            plain, changed = (
                self._on_cluster(mpi, layout, (program, "pipeline", PIPELINE_BYTES, PIPELINE_STEPS, work_us))
                for work_us in (WORK_US, WORK_US // 2)
            )
            # In either direction a rank works before it sends, or before it receives the next one.
            halves = ("--compute", "MPI_Send=0.5x", "--compute", "MPI_Recv=0.5x")
            predicted = self._predict(mpi, plain, *halves)
            yield self._check(OWN_WORK, mpi, f"pipeline, {layout}", predicted, plain, changed, OWN_CORES)

    def _own_balance(self, mpi: str) -> Iterator[Check]:
        """Even rows of the plate of examples/heat."""
        program = self._compiled(find_flavour(mpi), HEAT.read_text(), "heat", "-lm")
        for layout in (APART, TOGETHER):
            plain = self._on_cluster(mpi, layout, (program, HEAT_STEPS))
            changed = self._on_cluster(mpi, layout, (program, HEAT_STEPS, "even"))
            predicted = self._predict(mpi, plain, "--balance", "all")
            yield self._check(OWN_BALANCE, mpi, f"heat, {layout}", predicted, plain, changed, OWN_CORES)

    def _own_programs(self, mpi: str) -> Iterator[tuple[tuple[Any, ...], str]]:
        program = self._program(mpi)
        for size in SIZES_BYTES:
            yield (program, "ring", size, 4 * ITERATIONS), _case("ring", size)
        pipeline = (program, "pipeline", PIPELINE_BYTES, PIPELINE_STEPS, WORK_US)
        yield pipeline, _case("pipeline", PIPELINE_BYTES)
        for operation in ("bcast", "allreduce"):
            yield (program, operation, SIZES_BYTES[0], 4 * ITERATIONS), _case(operation, SIZES_BYTES[0])

    def _layouts(self, mpi: str) -> Iterator[Check]:
        program = self._program(mpi)
        for what, size in _exchanges():
            arguments = (program, what, size, ITERATIONS)
            plain = self._on_cluster(mpi, NARROW, arguments)
            changed = self._on_cluster(mpi, WIDE, arguments)
            predicted = self._predict(mpi, plain, "--to-layout", WIDE)
            yield self._check(LAYOUT, mpi, _case(what, size), predicted, plain, changed, SHARED_CORES)

    def _other_mpis(self, mpi: str) -> Iterator[Check]:
        if mpi != self.mpis[0]:  # from the first to each of the others
            return
        for other in self.mpis[1:]:
            programs = self._program(mpi), self._program(other)
            for what, size in _exchanges():
                plain, changed = (
                    self._on_cluster(name, WIDE, (program, what, size, ITERATIONS))
                    for name, program in zip((mpi, other), programs, strict=True)
                )
                predicted = self._predict(mpi, plain, "--to-profile", self._profile(other))
                case = f"{_case(what, size)}, {other}"
                yield self._check(OTHER_MPI, mpi, case, predicted, plain, changed, SHARED_CORES)

    def _collectives(self, mpi: str) -> Iterator[Check]:
        program = self._program(mpi)
        for operation in OPERATIONS:
            for size in SIZES_BYTES:
                plain = self._on_cluster(mpi, f"{NODES}x1x1", (program, operation, size, ITERATIONS))
                recording = self._record(mpi, plain)
                profiles = self._profile(mpi), self._collective_profile(mpi, operation)
                options = [option for profile in profiles for option in ("--profile", profile)]
                advice = advice_from_json(earlybird("advise", "program", recording, *options))
                predicted = simulated_program_from_json(earlybird("predict", "program", recording, *options))
                change = _collective(advice)
                settings = {} if change is None else settings_of(change.action)
                if change is None or change.speed_up is None or not settings:
                    what = "the default is advised" if change is None else f"no settings in {change.action!r}"
                    say(f"{mpi}, {_case(operation, size)}: {what}")
                    continue
                measured = self._speed_up(plain, plain, settings)
                yield Check(
                    COLLECTIVE, mpi, change.method, change.speed_up, measured, predicted.error, SHARED_CORES
                )

    def _check(
        self, kind: str, mpi: str, case: str, predicted: SimulatedProgram, plain: Sequence[Any],
        changed: Sequence[Any], condition: str,
    ) -> Check:  # fmt: skip
        speed_up = predicted.speed_up
        assert speed_up is not None
        measured = self._speed_up(plain, changed)
        return Check(kind, mpi, case, speed_up, measured, predicted.error, condition)

    def _on_cluster(self, mpi: str, layout: str, arguments: Sequence[Any], cluster: str = "") -> list[Any]:
        where = ("--name", cluster or self.cluster, "--mpi", mpi, "--layout", layout)
        return [EARLYBIRD, "cluster", "mpiexec", *where, "--", *arguments]

    def _record(self, mpi: str, command: Sequence[Any]) -> Path:
        recording = self._next("recording") / "rec"
        _run([EARLYBIRD, "record", "--events", "all", "-o", recording, "--mpi", mpi, "--", *command], {})
        return recording

    def _predict(self, mpi: str, command: Sequence[Any], *changes: Any) -> SimulatedProgram:
        """Record `command` and simulate it with the changes."""
        options = ("--profile", self._profile(mpi), *changes)
        found = earlybird("predict", "program", self._record(mpi, command), *options)
        return simulated_program_from_json(found)

    def _speed_up(
        self, plain: Sequence[Any], changed: Sequence[Any], settings: Mapping[str, str] | None = None
    ) -> Estimate:
        """The time that `plain` prints over that of `changed`."""
        return measured_speed_up(
            self.rounds, lambda: _seconds(plain, {}), lambda: _seconds(changed, settings or {})
        )

    def _profile(self, mpi: str) -> Path:
        suites = {"pingpong": ("20s",), "contention": ("60s",), "completion": ("30s",)}
        return fitted_profile(self.folder, self.cluster, mpi, "exchanges", suites)

    def _collective_profile(self, mpi: str, operation: str) -> Path:
        options = (
            "40s", "--op", operation, "--ranks", NODES, "--map-by", "node", "--sizes", COLLECTIVE_SIZES,
            "--verify", "none",
        )  # fmt: skip
        return fitted_profile(self.folder, self.cluster, mpi, operation, {"collective": options})

    def _program(self, mpi: str) -> Path:
        return self._compiled(find_flavour(mpi), PROGRAM, "exchange")

    def _compiled(self, flavour: Flavour, text: str, name: str, *libraries: str) -> Path:
        program = self.folder / f"{flavour.name}-{name}"
        if not program.exists():
            source = program.with_suffix(".c")
            source.write_text(text)
            command = [flavour.mpicc, "-O2", source, "-o", program, *libraries]
            subprocess.run(command, env=os.environ | flavour.environment(), check=True)
        return program

    def _next(self, what: str) -> Path:
        """A folder of its own for each call."""
        while True:
            self._recorded += 1
            folder = self.folder / f"{self._recorded}-{what}"
            if not folder.exists():
                folder.mkdir()
                return folder


def _exchanges() -> Iterator[tuple[str, int]]:
    return ((what, size) for what in PATTERNS for size in SIZES_BYTES)


def _case(what: str, size: int) -> str:
    return f"{what}, {format_bytes(size)}"


def _collective(advice: Advice) -> Alternative | None:
    """The alternative that selects an algorithm, the fastest one; None without one."""
    found = [one for one in advice.ranked if one.extra.get("kind") == COLLECTIVE]
    return max(found, key=lambda one: one.speed_up.value if one.speed_up else 0.0, default=None)


def _seconds(command: Sequence[Any], settings: Mapping[str, str]) -> float:
    """What the command prints: the number in its last line, as launchers may print others."""
    last = _run(command, settings).strip().splitlines()[-1]
    return next(float(word) for word in last.split() if word.replace(".", "", 1).replace("e-", "").isdigit())


def _run(command: Sequence[Any], settings: Mapping[str, str]) -> str:
    arguments = [str(word) for word in command]
    ended = subprocess.run(arguments, env=os.environ | settings, stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"simulated-programs: {' '.join(arguments)} ended with status {ended.returncode}")
    return ended.stdout
