"""What `earlybird project` says a change would save, against the program run with that change.

A program is recorded and the change is projected. Then the program runs plain and changed by turns,
unrecorded; the measured speed-up is the median of the ratios of these pairs, or for partitions of the
launches of one `measure`. Checked are another layout and another MPI for exchanges, the advised algorithm of
collectives, and partitions for halo3d and sweep3d, all on 4 virtual nodes, and a communicator for each of two
threads, which needs four cores. About 45 minutes for three MPIs.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.commands import EARLYBIRD, chosen_flavours, earlybird, say, virtual_cluster
from bench.projected_changes import (
    Check,
    announce,
    fitted_profile,
    measured_speed_up,
    report,
    settings_of,
)
from earlybird.compare.motifs import over_best
from earlybird.data import labels
from earlybird.data.files import write_json
from earlybird.data.methods import EARLYBIRD as EARLYBIRD_STYLE
from earlybird.data.methods import FUNNELLED
from earlybird.data.projection import (
    COLLECTIVE,
    COMMUNICATORS,
    LAYOUT,
    OTHER_MPI,
    PARTITIONS,
    ProjectedChange,
    Projection,
    projection_from_json,
)
from earlybird.data.run import Run
from earlybird.data.schema import Estimate
from earlybird.data.units import format_bytes
from earlybird.machine.flavours import Flavour, find_flavour

# All nodes share two cores: at higher rates these are the limit when every node sends.
NODES, RATE = 4, "100mbit"
NARROW, WIDE = "2x1x4", "4x1x2"
PATTERNS = ("ring", "far", "random")
SIZES_BYTES = (64 << 10, 1 << 20)
OPERATIONS = ("bcast", "reduce", "allreduce")
COLLECTIVE_SIZES = "4KiB,64KiB,256KiB,1MiB"
# Of a cell for halo3d; angles for sweep3d, which threads share.
VARIABLES = {"halo3d": (1, 4, 8), "sweep3d": (4, 16, 32)}
ROUNDS, ITERATIONS = 5, 10
THREADS, WINDOWS = 2, 3000
KINDS = (LAYOUT, OTHER_MPI, COLLECTIVE, PARTITIONS, COMMUNICATORS)
THREADS_SOURCE = Path(__file__).parents[1] / "tests/native/programs/record_threads.c"
# exchange ring|far|random|bcast|reduce|allreduce BYTES ITERATIONS: prints the seconds in the iterations, the
# mean over ranks, as a phase of a recording counts them. A rank computes (sleeps) 2 ms in each.
PROGRAM = r"""#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { MAX = 16 };
static int rank, ranks, peers, to[MAX], from[MAX], size_to[MAX], size_from[MAX];
static char *sent, *received;
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
static double call(const char *operation, int bytes) {
  const int count = bytes / (int)sizeof(double);
  compute();
  const double begin = MPI_Wtime();
  if (strcmp(operation, "bcast") == 0) MPI_Bcast(sent, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else if (strcmp(operation, "reduce") == 0)
    MPI_Reduce(sent, received, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  else MPI_Allreduce(sent, received, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return MPI_Wtime() - begin;
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4 || ranks > MAX) MPI_Abort(MPI_COMM_WORLD, 2);
  const char *what = argv[1];
  const int bytes = atoi(argv[2]), iterations = atoi(argv[3]);
  const int exchanges = strcmp(what, "ring") == 0 || strcmp(what, "far") == 0 || strcmp(what, "random") == 0;
  sent = calloc(3, (size_t)bytes);
  received = calloc(3, (size_t)bytes);
  if (exchanges) plan(what, bytes);
  double mine = 0, all = 0;
  for (int k = 0; k < iterations; k++) {
    const double begin = MPI_Wtime();
    if (exchanges) {
      exchange(bytes);
      mine += MPI_Wtime() - begin;
    } else mine += call(what, bytes);
  }
  MPI_Gather(&mine, 1, MPI_DOUBLE, received, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (int k = 0; k < ranks && rank == 0; k++) all += ((double *)received)[k];
  if (rank == 0) printf("%.9g\n", all / ranks);
  return MPI_Finalize();
}
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Project, run and print a table; 1 if a partitioned style is further off than allowed."""
    options = _parser().parse_args(list(arguments))
    if options.rounds < 1:
        say(f"projection-checks: --rounds is {options.rounds}; give 1 or more")
        return 2
    mpis = [flavour.name for flavour in chosen_flavours(options.mpi)]
    found: list[Check] = []
    try:
        with tempfile.TemporaryDirectory() as folder, virtual_cluster(NODES, RATE) as cluster:
            bench = _Bench(Path(folder), cluster, mpis, options.rounds)
            for kind in options.check or KINDS:
                for check in bench.checks_of(kind):
                    found.append(check)
                    announce(check)
    finally:
        if found:
            report(found, "a phase")
        # Also what was measured before a launch died or Ctrl-C.
        if options.json is not None and found:
            write_json(options.json, {"checks": [one.to_json() for one in found]})
    asked = options.check or KINDS
    near = [one.is_near for one in found if one.kind == PARTITIONS]
    return int(PARTITIONS in asked and (not near or not all(near)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench projection-checks", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--check", action="append", choices=KINDS, help="repeat for several; default all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of runs; default {ROUNDS}")
    parser.add_argument("--json", type=Path, help="write every check here")
    return parser


class _Bench:
    """The checks, and what they share: profiles are measured when first needed."""

    def __init__(self, folder: Path, cluster: str, mpis: Sequence[str], rounds: int):
        self.folder, self.cluster, self.mpis, self.rounds = folder, cluster, mpis, rounds
        self._recorded = 0

    def checks_of(self, kind: str) -> Iterator[Check]:
        checks: dict[str, Callable[[str], Iterator[Check]]] = {
            LAYOUT: self._layouts, OTHER_MPI: self._other_mpis, COLLECTIVE: self._collectives,
            PARTITIONS: self._partitions, COMMUNICATORS: self._communicators,
        }  # fmt: skip
        for mpi in self.mpis:
            yield from checks[kind](mpi)

    def _layouts(self, mpi: str) -> Iterator[Check]:
        program = self._program(mpi)
        for what, size in _exchanges():
            arguments = (program, what, size, ITERATIONS)
            plain = self._on_cluster(mpi, NARROW, arguments)
            projection = self._project(mpi, plain, "--to-layout", WIDE)
            if (change := _change(projection, LAYOUT)) is None:
                say(f"{mpi}, {_case(what, size)}: no layout is projected: {_notes(projection)}")
            else:
                measured = self._speed_up(plain, self._on_cluster(mpi, WIDE, arguments))
                yield Check(LAYOUT, mpi, _case(what, size), change.speed_up, measured)

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
                projection = self._project(mpi, plain, "--to-profile", self._profile(other))
                if (change := _change(projection, OTHER_MPI)) is None:
                    say(f"{mpi}, {_case(what, size)}: {other} is not projected: {_notes(projection)}")
                else:
                    measured = self._speed_up(plain, changed)
                    yield Check(OTHER_MPI, mpi, f"{_case(what, size)}, {other}", change.speed_up, measured)

    def _collectives(self, mpi: str) -> Iterator[Check]:
        program = self._program(mpi)
        for operation in OPERATIONS:
            for size in SIZES_BYTES:
                plain = self._on_cluster(mpi, f"{NODES}x1x1", (program, operation, size, ITERATIONS))
                projection = self._project(mpi, plain, profile=self._collective_profile(mpi, operation))
                change = _change(projection, COLLECTIVE)
                settings = {} if change is None else settings_of(change)
                if change is None or not settings:
                    what = "the default is advised" if change is None else f"no settings in {change.action!r}"
                    say(f"{mpi}, {_case(operation, size)}: {what}")
                    continue
                measured = self._speed_up(plain, plain, settings)
                yield Check(COLLECTIVE, mpi, change.change, change.speed_up, measured)

    def _partitions(self, mpi: str) -> Iterator[Check]:
        for motif, numbers in VARIABLES.items():
            for variables in numbers:
                arguments = (
                    "measure", motif, "--mpi", mpi, "--launcher", f"cluster:{self.cluster}", "--ranks", NODES,
                    "--map-by", "node", "--process-grid", "2x2x1", "--cells", "64x64x64", "--variables",
                    variables, "--threads", THREADS, "--partitions", THREADS, "--compute", "4ms", "--noise",
                    "single", "--noise-percent", 50,
                )  # fmt: skip
                folder = self._next(motif)
                once = ("--methods", FUNNELLED, "--launches", 1, "--quiet", "-o", folder / "recorded")
                projection = self._project(
                    mpi, [EARLYBIRD, *arguments, *once], "--partitions", THREADS, "--delay", "2ms"
                )
                change = _change(projection, PARTITIONS)
                if change is None:
                    say(f"{mpi}, {motif}, {variables}: no partitions are projected: {_notes(projection)}")
                    continue
                both = f"{FUNNELLED},{EARLYBIRD_STYLE}"
                run = folder / "compared"
                earlybird(*arguments, "--methods", both, "--launches", self.rounds, "--quiet", "-o", run)
                for over in over_best(list(Run.open(run).samples()), EARLYBIRD_STYLE):
                    case = f"{motif}, {labels.counted(variables, 'variable')}"
                    yield Check(PARTITIONS, mpi, case, change.speed_up, over.speed_up.estimate)

    def _communicators(self, mpi: str) -> Iterator[Check]:
        program = self._compiled(find_flavour(mpi), THREADS_SOURCE.read_text(), "threads")

        def launch(communicators: str) -> list[Any]:
            arguments = ("exec", "--mpi", mpi, "--no-interpose", "--", "mpiexec", "-n", 2, program)
            return [EARLYBIRD, *arguments, communicators, THREADS, WINDOWS]

        rates = self.folder / f"{mpi}-msgrate"
        where = ("--mpi", mpi, "--threads", THREADS)
        # A profile needs the costs of messages, too.
        earlybird("measure", "msgrate", "pingpong", *where, "--quick", "--quiet", "-o", rates)
        profile = self.folder / f"{mpi}-msgrate.json"
        earlybird("fit", rates, "-o", profile)
        projection = self._project(mpi, launch("shared"), profile=profile)
        if _change(projection, COMMUNICATORS) is None:
            say(f"{mpi}: a communicator for each thread is not projected: {_notes(projection)}")
        for change in _changes(projection, COMMUNICATORS):
            # The program does not set the info key that Intel MPI's contexts need.
            if mpi == "intel" and "contexts" in change.change:
                continue
            settings = settings_of(change)
            measured = self._speed_up(launch("shared"), launch("own"), settings)
            yield Check(COMMUNICATORS, mpi, change.change, change.speed_up, measured)

    def _on_cluster(self, mpi: str, layout: str, arguments: Sequence[Any]) -> list[Any]:
        where = ("--name", self.cluster, "--mpi", mpi, "--layout", layout)
        return [EARLYBIRD, "cluster", "mpiexec", *where, "--", *arguments]

    def _project(
        self, mpi: str, command: Sequence[Any], *changes: Any, profile: Path | None = None
    ) -> Projection:
        """Record `command` and project."""
        recording = self._next("recording") / "rec"
        _run([EARLYBIRD, "record", "-o", recording, "--mpi", mpi, "--", *command], {})
        return projection_from_json(
            earlybird("project", recording, "--profile", profile or self._profile(mpi), *changes)
        )

    def _speed_up(
        self, plain: Sequence[Any], changed: Sequence[Any], settings: Mapping[str, str] | None = None
    ) -> Estimate:
        """The time that `plain` prints over that of `changed`."""
        return measured_speed_up(
            self.rounds, lambda: _seconds(plain, {}), lambda: _seconds(changed, settings or {})
        )

    def _profile(self, mpi: str) -> Path:
        suites = {"contention": ("60s",), "completion": ("30s",)}
        return fitted_profile(self.folder, self.cluster, mpi, "exchanges", suites)

    def _collective_profile(self, mpi: str, operation: str) -> Path:
        options = (
            "40s", "--op", operation, "--ranks", NODES, "--map-by", "node", "--sizes", COLLECTIVE_SIZES,
            "--verify", "none",
        )  # fmt: skip
        return fitted_profile(self.folder, self.cluster, mpi, operation, {"collective": options})

    def _program(self, mpi: str) -> Path:
        return self._compiled(find_flavour(mpi), PROGRAM, "exchange")

    def _compiled(self, flavour: Flavour, text: str, name: str) -> Path:
        program = self.folder / f"{flavour.name}-{name}"
        if not program.exists():
            source = program.with_suffix(".c")
            source.write_text(text)
            command = [flavour.mpicc, "-O2", "-pthread", source, "-o", program]
            subprocess.run(command, env=os.environ | flavour.environment(), check=True)
        return program

    def _next(self, what: str) -> Path:
        """A folder of its own for each call."""
        self._recorded += 1
        folder = self.folder / f"{self._recorded}-{what}"
        folder.mkdir()
        return folder


def _exchanges() -> Iterator[tuple[str, int]]:
    return ((what, size) for what in PATTERNS for size in SIZES_BYTES)


def _case(what: str, size: int) -> str:
    return f"{what}, {format_bytes(size)}"


def _changes(projection: Projection, kind: str) -> list[ProjectedChange]:
    """Those of one kind of the phase that takes longest, if their speed-up is known."""
    phases = [phase for phase in projection.phases if any(change.kind == kind for change in phase.changes)]
    longest = max(phases, key=lambda phase: phase.time_s, default=None)
    of_longest = longest.changes if longest is not None else ()
    return [change for change in of_longest if change.kind == kind and change.speed_up is not None]


def _change(projection: Projection, kind: str) -> ProjectedChange | None:
    """The first of them."""
    return next(iter(_changes(projection, kind)), None)


def _notes(projection: Projection) -> str:
    notes = [note for phase in projection.phases for note in phase.notes]
    notes += [change.reason for phase in projection.phases for change in phase.changes if change.reason]
    return "; ".join(dict.fromkeys([*notes, *projection.notes]))


def _seconds(command: Sequence[Any], settings: Mapping[str, str]) -> float:
    """What the command prints; its last line, as launchers may print others."""
    return float(_run(command, settings).split()[-1])


def _run(command: Sequence[Any], settings: Mapping[str, str]) -> str:
    arguments = [str(word) for word in command]
    ended = subprocess.run(arguments, env=os.environ | settings, stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"projection-checks: {' '.join(arguments)} ended with status {ended.returncode}")
    return ended.stdout
