"""What `earlybird predict program` says of changes, against the programs run with them.

A program is recorded three times with all events; the run of median duration is simulated as it was and with
a change, without its start. Then the program runs plain and changed by turns, unrecorded; the measured
speed-up is the median of the ratios of the times that it prints. Two tables: ranks that have a core each (two
ranks, with the links of a virtual cluster), and ranks that share cores (8 ranks on 4 virtual nodes: layouts,
other MPIs, algorithms of collectives). About an hour for three MPIs, in pieces with --folder and --seconds:
what the folder has is not measured again, but simulated again.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commands import EARLYBIRD, chosen_flavours, earlybird, say, virtual_cluster
from bench.program_checks import (
    Check,
    announce,
    fitted_profile,
    measured_times_s,
    report,
    settings_of,
    speed_up_of,
)
from earlybird.data.advice import Advice, Alternative, advice_from_json
from earlybird.data.files import write_json
from earlybird.data.recording import load_recording
from earlybird.data.schema import Estimate
from earlybird.data.simulated_program import simulated_program_from_json
from earlybird.data.units import format_bytes
from earlybird.machine.flavours import Flavour, find_flavour

# All nodes share two cores: at higher rates these are the limit when every node sends.
NODES, RATE, FASTER = 4, "100mbit", "400mbit"
# What the program measures, and what of a recording is simulated.
MEASURED = ("--window", "MPI_Barrier:2..3")
NARROW, WIDE = "2x1x4", "4x1x2"
PATTERNS = ("ring", "far", "random")
SIZES_BYTES = (64 << 10, 1 << 20)
OPERATIONS = ("bcast", "reduce", "allreduce")
COLLECTIVE_SIZES = "4KiB,64KiB,256KiB,1MiB"
ROUNDS, ITERATIONS, RECORDINGS = 5, 10, 3
# Two ranks with a core each: steps of heat; steps, bytes and microseconds of work of the pipeline.
HEAT_STEPS, PIPELINE_STEPS, PIPELINE_BYTES, WORK_US = 60, 300, 20_000, 1000
APART, TOGETHER = "2x1x1", "1x1x2"
OWN_CORES, SHARED_CORES = "two ranks with a core each", "ranks that share cores"
LAYOUT, OTHER_MPI, COLLECTIVE = "layout", "mpi", "collective"
OWN_LAYOUT, OWN_RATE, OWN_WORK, OWN_BALANCE = "own-layout", "own-rate", "own-work", "own-balance"
OWN_THREADS = "own-threads"
KINDS = (OWN_LAYOUT, OWN_RATE, OWN_WORK, OWN_BALANCE, OWN_THREADS, LAYOUT, OTHER_MPI, COLLECTIVE)
PROFILE_SUITES = {
    "pingpong": ("12s",), "contention": ("40s",), "completion": ("15s",),
    "contention reuse": ("12s", "--buffers", "reuse", "--levels", "intra_socket"),
}  # fmt: skip
_NUMBER = r"([0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?)"
_SECONDS, _ALONE = re.compile(rf"{_NUMBER} s\b"), re.compile(_NUMBER)
HEAT = Path(__file__).parents[1] / "examples/heat/heat.c"
# Two threads of rank 0, which it creates and joins in each step, compute and send: steps, microseconds of
# both, bytes.
WORKERS = Path(__file__).parents[1] / "tests/native/programs/record_workers.c"
WORKERS_STEPS, WORKERS_US, WORKERS_BYTES = 60, (6000, 9000), 50_000
# PROGRAM ring|far|random|bcast|reduce|allreduce|pipeline BYTES ITERATIONS [MICROSECONDS]: prints the seconds
# from its second barrier to its third. A rank sleeps 2 ms in each iteration; of a pipeline, it works.
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
  const char *what = argv[1];
  const int bytes = atoi(argv[2]), iterations = atoi(argv[3]);
  const int exchanges = strcmp(what, "ring") == 0 || strcmp(what, "far") == 0 || strcmp(what, "random") == 0;
  work_us = argc > 4 ? atof(argv[4]) : 0;
  sent = calloc(3, (size_t)bytes);
  received = calloc(3, (size_t)bytes);
  if (exchanges) plan(what, bytes);
  MPI_Barrier(MPI_COMM_WORLD); /* ranks start at different times */
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
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
    until_s = time.monotonic() + options.seconds
    found: list[Check] = []
    num_left = 0
    try:
        with contextlib.ExitStack() as stack:
            folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            bench = _Bench(folder.resolve(), stack, mpis, options.rounds)
            if options.profiles:
                for mpi in mpis:
                    bench.profile(mpi)
            for kind in options.check or KINDS:
                for plan in bench.plans_of(kind):
                    if options.case not in plan.case:
                        continue
                    if not bench.is_measured(plan) and time.monotonic() > until_s:
                        num_left += 1
                        continue
                    check = bench.check(plan)
                    if check is not None:
                        found.append(check)
                        announce(check)
    finally:
        if found:
            report(found)
        # Also what was measured before a launch died or Ctrl-C.
        if options.json is not None and found:
            write_json(options.json, {"checks": [one.to_json() for one in found]})
    if num_left:
        say(f"{num_left} checks are not measured yet: run the command again")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench simulated-programs", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--check", action="append", choices=KINDS, help="repeat for several; default all")
    parser.add_argument("--case", default="", help="only cases that contain this, such as `ring, 1 MiB`")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of runs; default {ROUNDS}")
    parser.add_argument(
        "--folder", type=Path, help="keep recordings, profiles and times; what is there is used again"
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no measurement after so many"
    )
    parser.add_argument("--profiles", action="store_true", help="measure the profiles of messages first")
    parser.add_argument("--json", type=Path, help="write every check here")
    return parser


# A command that prints its seconds, made for the cluster of the run.
Command = Callable[[], list[Any]]


@dataclass(frozen=True)
class Plan:
    """A check to make.

    Attributes
    ----------
    plain, changed : the commands of the runs.
    options : of `predict program`, made when it is called.
    operation : of a check of an advised algorithm: the settings are those that are advised.
    """

    kind: str
    mpi: str
    case: str
    condition: str
    plain: Command
    changed: Command
    options: Callable[[], tuple[Any, ...]]
    operation: str = ""

    @property
    def name(self) -> str:
        return re.sub(r"[^a-zA-Z0-9]+", "-", f"{self.kind} {self.mpi} {self.case}")


class _Bench:
    """The checks, and what they share: clusters and profiles are made when first needed."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, mpis: Sequence[str], rounds: int):
        self.folder, self.stack, self.mpis, self.rounds = folder, stack, mpis, rounds
        self._clusters: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def plans_of(self, kind: str) -> Iterator[Plan]:
        plans: dict[str, Callable[[str], Iterator[Plan]]] = {
            OWN_LAYOUT: self._own_layouts, OWN_RATE: self._own_rates, OWN_WORK: self._own_work,
            OWN_BALANCE: self._own_balance, OWN_THREADS: self._own_threads, LAYOUT: self._layouts,
            OTHER_MPI: self._other_mpis, COLLECTIVE: self._collectives,
        }  # fmt: skip
        for mpi in self.mpis:
            yield from plans[kind](mpi)

    def is_measured(self, plan: Plan) -> bool:
        return (self.folder / plan.name / "times.json").exists()

    def check(self, plan: Plan) -> Check | None:
        """Record, simulate and run; what the folder has is only simulated. None: nothing is advised."""
        recording = self._recording(plan)
        options, settings, name = plan.options(), {}, plan.case
        window = () if plan.kind == OWN_BALANCE else MEASURED  # heat measures its whole run
        predicted = simulated_program_from_json(earlybird("predict", "program", recording, *options, *window))
        speed_up = predicted.speed_up
        if plan.operation:
            advice = advice_from_json(earlybird("advise", "program", recording, *options))
            change = _collective(advice)
            settings = {} if change is None else settings_of(change.action)
            if change is None or change.speed_up is None or not settings:
                what = "the default is advised" if change is None else f"no settings in {change.action!r}"
                say(f"{plan.mpi}, {plan.case}: {what}")
                return None
            speed_up, name = change.speed_up, change.method
        assert speed_up is not None
        measured = self._measured(plan, settings)
        return Check(plan.kind, plan.mpi, name, speed_up, measured, predicted.error, plan.condition)

    def _recording(self, plan: Plan) -> Path:
        """The recording of the run of median duration, of three."""
        recording = self.folder / plan.name / "rec"
        if not recording.exists():
            runs = [recording.with_name(f"run-{number}") for number in range(RECORDINGS)]
            for run in runs:
                shutil.rmtree(run, ignore_errors=True)  # what was interrupted is recorded again
                run.parent.mkdir(exist_ok=True)
                command = [EARLYBIRD, "record", "--events", "all", "-o", run, "--mpi", plan.mpi, "--"]
                _run([*command, *plan.plain()], {})
            runs.sort(key=lambda run: load_recording(run).run_s)
            runs.pop(RECORDINGS // 2).rename(recording)
            for run in runs:
                shutil.rmtree(run)
        return recording

    def _measured(self, plan: Plan, settings: Mapping[str, str]) -> Estimate:
        """The time that the plain command prints over that of the changed one."""
        path = self.folder / plan.name / "times.json"
        if path.exists():
            kept = json.loads(path.read_text())
            if kept["settings"] == settings:
                return speed_up_of(kept["times_s"])
        plain, changed = plan.plain(), plan.changed()
        times_s = measured_times_s(
            self.rounds, lambda: _seconds(plain, {}), lambda: _seconds(changed, settings)
        )
        write_json(path, {"settings": dict(settings), "times_s": times_s})
        return speed_up_of(times_s)

    def _own_layouts(self, mpi: str) -> Iterator[Plan]:
        """Two ranks on two nodes, and on one."""
        for arguments, case in self._own_programs():
            apart, together = (self._on_cluster(mpi, layout, arguments) for layout in (APART, TOGETHER))
            options = self._options(mpi, "--to-layout", TOGETHER)
            yield Plan(OWN_LAYOUT, mpi, case, OWN_CORES, apart, together, options)

    def _own_rates(self, mpi: str) -> Iterator[Plan]:
        """Links of four times the rate."""
        times = float(FASTER.removesuffix("mbit")) / float(RATE.removesuffix("mbit"))
        options = self._options(mpi, "--set", f"inter_node.bandwidth={times:g}x")
        for arguments, case in self._own_programs():
            slow, fast = (self._on_cluster(mpi, APART, arguments, rate) for rate in (RATE, FASTER))
            yield Plan(OWN_RATE, mpi, case, OWN_CORES, slow, fast, options)

    def _own_work(self, mpi: str) -> Iterator[Plan]:
        """Half the work in each step of a pipeline, on two nodes and on one."""
        # In either direction a rank works before it sends, or before it receives the next one.
        options = self._options(mpi, "--compute", "MPI_Send=0.5x", "--compute", "MPI_Recv=0.5x")
        for layout in (APART, TOGETHER):
            whole, half = (
                self._on_cluster(mpi, layout, ("exchange", "pipeline", PIPELINE_BYTES, PIPELINE_STEPS, work))
                for work in (WORK_US, WORK_US // 2)
            )
            yield Plan(OWN_WORK, mpi, f"pipeline, {layout}", OWN_CORES, whole, half, options)

    def _own_balance(self, mpi: str) -> Iterator[Plan]:
        """Even rows of the plate of examples/heat."""
        for layout in (APART, TOGETHER):
            uneven, even = (
                self._on_cluster(mpi, layout, ("heat", HEAT_STEPS, *words)) for words in ((), ("even",))
            )
            options = self._options(mpi, "--balance", "all")
            yield Plan(OWN_BALANCE, mpi, f"heat, {layout}", OWN_CORES, uneven, even, options)

    def _own_threads(self, mpi: str) -> Iterator[Plan]:
        """A thread that joins two others, which compute for half the time, or send over links of four times
        the rate; they sleep instead of computing, since two ranks and their threads share two cores."""
        times = float(FASTER.removesuffix("mbit")) / float(RATE.removesuffix("mbit"))
        halves = tuple(work // 2 for work in WORKERS_US)

        def command(works_us: Sequence[int], rate: str = RATE) -> Command:
            arguments = ("workers", WORKERS_STEPS, *works_us, WORKERS_BYTES)
            return self._on_cluster(mpi, APART, arguments, rate)

        for case, changed, options in (
            ("half the work", command(halves), ("--compute", "MPI_Send in work=0.5x")),
            ("faster links", command(WORKERS_US, FASTER), ("--set", f"inter_node.bandwidth={times:g}x")),
        ):
            made = self._options(mpi, *options)
            yield Plan(OWN_THREADS, mpi, case, OWN_CORES, command(WORKERS_US), changed, made)

    def _own_programs(self) -> Iterator[tuple[tuple[Any, ...], str]]:
        for size in SIZES_BYTES:
            yield ("exchange", "ring", size, 4 * _iterations(size)), _case("ring", size)
        pipeline = ("exchange", "pipeline", PIPELINE_BYTES, PIPELINE_STEPS, WORK_US)
        yield pipeline, _case("pipeline", PIPELINE_BYTES)
        size = SIZES_BYTES[0]
        for operation in ("bcast", "allreduce"):
            yield ("exchange", operation, size, 4 * _iterations(size)), _case(operation, size)

    def _layouts(self, mpi: str) -> Iterator[Plan]:
        options = self._options(mpi, "--to-layout", WIDE)
        for what, size in _exchanges():
            arguments = ("exchange", what, size, _iterations(size))
            narrow, wide = (self._on_cluster(mpi, layout, arguments) for layout in (NARROW, WIDE))
            yield Plan(LAYOUT, mpi, _case(what, size), SHARED_CORES, narrow, wide, options)

    def _other_mpis(self, mpi: str) -> Iterator[Plan]:
        if mpi != self.mpis[0]:  # from the first to each of the others
            return
        for other in self.mpis[1:]:
            for what, size in _exchanges():
                plain, changed = (
                    self._on_cluster(name, WIDE, ("exchange", what, size, _iterations(size)))
                    for name in (mpi, other)
                )
                case = f"{_case(what, size)}, {other}"
                options = self._options_to_profile(mpi, other)
                yield Plan(OTHER_MPI, mpi, case, SHARED_CORES, plain, changed, options)

    def _collectives(self, mpi: str) -> Iterator[Plan]:
        for operation in OPERATIONS:
            for size in SIZES_BYTES:
                arguments = ("exchange", operation, size, _iterations(size))
                plain = self._on_cluster(mpi, f"{NODES}x1x1", arguments)
                options = self._options(mpi, operation=operation)
                case = _case(operation, size)
                yield Plan(COLLECTIVE, mpi, case, SHARED_CORES, plain, plain, options, operation)

    def _options(self, mpi: str, *changes: Any, operation: str = "") -> Callable[[], tuple[Any, ...]]:
        """The options of `predict program`, with profiles that are measured when they are needed."""

        def made() -> tuple[Any, ...]:
            profiles = [self.profile(mpi)]
            if operation:
                profiles.append(self._collective_profile(mpi, operation))
            return (*(word for profile in profiles for word in ("--profile", profile)), *changes)

        return made

    def _options_to_profile(self, mpi: str, other: str) -> Callable[[], tuple[Any, ...]]:
        return lambda: ("--profile", self.profile(mpi), "--to-profile", self.profile(other))

    def _on_cluster(self, mpi: str, layout: str, arguments: Sequence[Any], rate: str = RATE) -> Command:
        def command() -> list[Any]:
            program = self._program(mpi, arguments[0])
            where = ("--name", self._cluster(rate), "--mpi", mpi, "--layout", layout)
            return [EARLYBIRD, "cluster", "mpiexec", *where, "--", program, *arguments[1:]]

        return command

    def _cluster(self, rate: str) -> str:
        if rate not in self._clusters:
            cluster = virtual_cluster(NODES, rate, suffix=f"-{rate}")
            self._clusters[rate] = self.stack.enter_context(cluster)
        return self._clusters[rate]

    def profile(self, mpi: str) -> Path:
        return self._fitted(mpi, "exchanges", PROFILE_SUITES)

    def _collective_profile(self, mpi: str, operation: str) -> Path:
        options = (
            "40s", "--op", operation, "--ranks", NODES, "--map-by", "node", "--sizes", COLLECTIVE_SIZES,
            "--verify", "none",
        )  # fmt: skip
        return self._fitted(mpi, operation, {"collective": options})

    def _fitted(self, mpi: str, name: str, suites: Mapping[str, Sequence[Any]]) -> Path:
        return fitted_profile(self.folder, lambda: self._cluster(RATE), mpi, name, suites)

    def _program(self, mpi: str, name: str) -> Path:
        if name == "heat":
            text = HEAT.read_text().replace("%.2f s", "%.5f s")
        else:
            text = WORKERS.read_text() if name == "workers" else PROGRAM
        return self._compiled(find_flavour(mpi), text, name, "-lm", "-pthread")

    def _compiled(self, flavour: Flavour, text: str, name: str, *libraries: str) -> Path:
        program = self.folder / f"{flavour.name}-{name}"
        source = program.with_suffix(".c")
        if not program.exists() or source.read_text() != text:
            source.write_text(text)
            command = [flavour.mpicc, "-O2", source, "-o", program, *libraries]
            subprocess.run(command, env=os.environ | flavour.environment(), check=True)
        return program


def _iterations(size_bytes: int) -> int:
    """Fewer of large messages, which take longer."""
    return ITERATIONS if size_bytes < SIZES_BYTES[1] else ITERATIONS // 2


def _exchanges() -> Iterator[tuple[str, int]]:
    return ((what, size) for what in PATTERNS for size in SIZES_BYTES)


def _case(what: str, size: int) -> str:
    return f"{what}, {format_bytes(size)}"


def _collective(advice: Advice) -> Alternative | None:
    """The alternative that selects an algorithm, the fastest one; None without one."""
    found = [one for one in advice.ranked if one.extra.get("kind") == COLLECTIVE]
    return max(found, key=lambda one: one.speed_up.value if one.speed_up else 0.0, default=None)


def _seconds(command: Sequence[Any], settings: Mapping[str, str]) -> float:
    """What the command prints in its last line, as launchers may print others: the number before ` s`, or
    nothing but a number."""
    last = _run(command, settings).strip().splitlines()[-1]
    found = _SECONDS.search(last) or _ALONE.fullmatch(last.strip())
    if found is None:
        raise SystemExit(f"simulated-programs: {' '.join(map(str, command))} printed no seconds: {last}")
    return float(found[1])


def _run(command: Sequence[Any], settings: Mapping[str, str]) -> str:
    arguments = [str(word) for word in command]
    ended = subprocess.run(arguments, env=os.environ | settings, stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"simulated-programs: {' '.join(arguments)} ended with status {ended.returncode}")
    return ended.stdout
