"""What `earlybird predict program` says of changes, against programs of 16 and 64 ranks under SMPI.

SimGrid simulates the ranks on nodes of one switch, so links can have any rate and ranks have a core each; it
shares links by its own model. The profile is measured on the simulated machine. All ranks are in one process,
into which nothing can be preloaded: the programs write down their calls themselves. Times do not vary, so a
change is run once. About four minutes.
"""

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from bench.commands import say
from bench.exchange_comparison import link_limited_machine, measured_profile
from bench.program_checks import Check, announce, report
from earlybird.data.files import write_json
from earlybird.data.layout import parse_layout
from earlybird.data.profile import load_profile
from earlybird.data.recorded_rank import CALL, RECEIVED, SENT
from earlybird.data.recorded_trace import COMPLETION, MESSAGE, ONE_CALL
from earlybird.data.recording import load_recording
from earlybird.data.schema import Estimate
from earlybird.data.simulated_machine import SimulatedMachine
from earlybird.data.units import format_bytes
from earlybird.launch.simgrid import cores_of_ranks, platform_xml, smpi_configuration
from earlybird.machine.flavours import find_flavour
from earlybird.record.conditions import conditions_as_recorded
from earlybird.record.operations import operations_of
from earlybird.record.simulation import (
    Change,
    algorithm_change,
    balance_change,
    computing_change,
    layout_change,
    predict_program,
    settings_change,
)
from tests.recordings import ALLREDUCE, FINALIZE, INIT, IRECV, ISEND, WAITALL, on_disk, trace_file

RANKS = (16, 64)
CORES = 8
NIC_BYTES_PER_S, FASTER = 1.25e9, 4
STEPS, WORK_US = 20, 200
BUDGETS = {"pingpong": "20s", "contention": "60s", "completion": "20s"}
CONDITION = "16 and 64 ranks under SMPI"
RATE, LAYOUT, WORK, BALANCE, ALGORITHM = KINDS = ("rate", "layout", "work", "balance", "algorithm")
# SMPI's names of what `--algorithm allreduce=` simulates.
ALGORITHMS = {"ring": "lr", "recursive-doubling": "rdb"}
_WORLD = 1
# PROGRAM halo|ring|random|sweep|fan|sum BYTES STEPS MICROSECONDS even|uneven FOLDER
PROGRAM = r"""#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { MAX = 128, SEND, RECEIVE, WAIT, SUM };
typedef struct { double begin, end; int call, peer, bytes, request; } line;
static line *lines;
static int num_lines, rank, ranks, serial, step_now, is_even;
static double work_us;
static MPI_Request requests[2 * MAX];
static int num_requests;
static char *out, *in;
static void note(double begin, int call, int peer, int bytes, int request) {
  lines[num_lines++] = (line){begin, MPI_Wtime(), call, peer, bytes, request};
}
static void compute(void) {
  const int uneven = (7 * rank) % 5;
  const double us = work_us * (is_even ? 1 : 0.6 + 0.2 * uneven);
  const struct timespec pause = {0, (long)(1000 * us)};
  nanosleep(&pause, NULL);
}
static void send_to(int peer, int bytes) {
  const double begin = MPI_Wtime();
  MPI_Isend(out, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &requests[num_requests++]);
  note(begin, SEND, peer, bytes, ++serial);
}
static void receive_from(int peer, int bytes) {
  const double begin = MPI_Wtime();
  MPI_Irecv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &requests[num_requests++]);
  note(begin, RECEIVE, peer, bytes, ++serial);
}
static void wait_all(void) {
  const double begin = MPI_Wtime();
  MPI_Waitall(num_requests, requests, MPI_STATUSES_IGNORE);
  note(begin, WAIT, -1, num_requests, 0);
  num_requests = 0;
}
static void sum(int bytes) {
  const double begin = MPI_Wtime();
  MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  note(begin, SUM, -1, bytes, 0);
}
static int shuffled(int seed, int of) { return (of * (2 * seed + 1) + 3 * seed + 1) % ranks; }
static int from_shuffled(int seed) {
  for (int k = 0; k < ranks; k++)
    if (shuffled(seed, k) == rank) return k;
  return -1;
}
static void step(const char *what, int bytes) {
  const int width = ranks == 16 ? 4 : 8, row = rank / width, column = rank % width;
  if (strcmp(what, "halo") == 0) {
    const int peers[4] = {row * width + (column + 1) % width, row * width + (column + width - 1) % width,
                          (rank + width) % ranks, (rank + ranks - width) % ranks};
    for (int k = 0; k < 4; k++) receive_from(peers[k ^ 1], bytes);
    compute();
    for (int k = 0; k < 4; k++) send_to(peers[k], bytes);
    wait_all();
    sum(8);
  } else if (strcmp(what, "ring") == 0) {
    receive_from((rank + ranks - 1) % ranks, bytes);
    receive_from((rank + 1) % ranks, bytes);
    compute();
    send_to((rank + 1) % ranks, bytes);
    send_to((rank + ranks - 1) % ranks, bytes);
    wait_all();
  } else if (strcmp(what, "random") == 0) {
    for (int k = 1; k <= 3; k++)
      if (from_shuffled(k) != rank) receive_from(from_shuffled(k), k * bytes / 3);
    compute();
    for (int k = 1; k <= 3; k++)
      if (shuffled(k, rank) != rank) send_to(shuffled(k, rank), k * bytes / 3);
    wait_all();
  } else if (strcmp(what, "sweep") == 0) {
    const int by = step_now % 2 ? -1 : 1, before = rank - by, after = rank + by;
    if (before >= 0 && before < ranks) receive_from(before, bytes), wait_all();
    compute();
    if (after >= 0 && after < ranks) send_to(after, bytes), wait_all();
  } else if (strcmp(what, "fan") == 0) {
    if (rank == 0) for (int k = 1; k < ranks; k++) receive_from(k, bytes);
    compute();
    if (rank) send_to(0, bytes);
    wait_all();
    if (rank) receive_from(0, 1024);
    else for (int k = 1; k < ranks; k++) send_to(k, 1024);
    wait_all();
  } else {
    compute();
    sum(bytes);
  }
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 7 || ranks > MAX) MPI_Abort(MPI_COMM_WORLD, 2);
  const int bytes = atoi(argv[2]), steps = atoi(argv[3]);
  work_us = atof(argv[4]);
  is_even = strcmp(argv[5], "even") == 0;
  lines = calloc((size_t)steps * (4 * (size_t)ranks + 16), sizeof *lines);
  out = calloc(1, (size_t)bytes + 1024);
  in = calloc(1, (size_t)bytes + 1024);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (step_now = 0; step_now < steps; step_now++) step(argv[1], bytes);
  const double end = MPI_Wtime();
  char path[4096];
  snprintf(path, sizeof path, "%s/%d.txt", argv[6], rank);
  FILE *file = fopen(path, "w");
  fprintf(file, "%.12g\n", end - begin);
  for (int k = 0; k < num_lines; k++) {
    const line *of = &lines[k];
    fprintf(file, "%.12g %.12g %d ", of->begin - begin, of->end - begin, of->call);
    fprintf(file, "%d %d %d\n", of->peer, of->bytes, of->request);
  }
  fclose(file);
  return MPI_Finalize();
}
"""
_SEND, _RECEIVE, _WAIT, _SUM = range(129, 133)


class Case(NamedTuple):
    """A program, and the messages or summands of its steps."""

    what: str
    size_bytes: int


CASES = (
    Case("halo", 16 << 10), Case("halo", 256 << 10), Case("ring", 64 << 10), Case("random", 256 << 10),
    Case("sweep", 64 << 10), Case("fan", 64 << 10), Case("sum", 64 << 10),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What a run needs: its ranks, layout, machine, work, and SMPI's settings."""

    case: Case
    layout: str
    machine: SimulatedMachine
    work_us: float = WORK_US
    is_even: bool = False
    settings: Mapping[str, str] | None = None


def main(arguments: Sequence[str] = ()) -> int:
    """Simulate by both and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench smpi-programs", description=__doc__)
    parser.add_argument("--check", action="append", choices=KINDS, help="repeat for several; default all")
    parser.add_argument("--ranks", action="append", type=int, choices=RANKS, help="default all")
    parser.add_argument("--case", default="", help="only cases that contain this, such as `halo, 16 KiB`")
    parser.add_argument(
        "--folder", type=Path, help="keep recordings and profiles; what is there is used again"
    )
    parser.add_argument("--json", type=Path, help="write every check here")
    options = parser.parse_args(list(arguments))
    found: list[Check] = []
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = _Bench(folder.resolve())
        for ranks in options.ranks or RANKS:
            for case in CASES:
                if options.case in f"{case.what}, {format_bytes(case.size_bytes)}":
                    for check in bench.checks_of(case, ranks, options.check or KINDS):
                        found.append(check)
                        announce(check)
    report(found)
    if options.json is not None:
        write_json(options.json, {"checks": [one.to_json() for one in found]})
    return 0


class _Bench:
    def __init__(self, folder: Path):
        self.folder, self.mpi = folder, find_flavour("simgrid")
        folder.mkdir(parents=True, exist_ok=True)
        self.program = folder / "program"
        source = folder / "program.c"
        if not self.program.exists() or source.read_text() != PROGRAM:
            source.write_text(PROGRAM)
            command = [self.mpi.mpicc, "-O2", "-w", source, "-o", self.program]
            subprocess.run(command, env=os.environ | self.mpi.environment(), check=True)

    def checks_of(self, case: Case, ranks: int, kinds: Sequence[str]) -> Iterator[Check]:
        machine = link_limited_machine(ranks // 2, CORES, NIC_BYTES_PER_S)
        apart, together = f"{ranks // 2}x1x2", f"{ranks // CORES}x1x{CORES}"
        plain = Run(case, apart, machine)
        label = f"{case.what}, {format_bytes(case.size_bytes)}, {ranks} ranks"
        profile, plain_s = load_profile(self._profile(machine)), self._run(plain)
        operations = operations_of(load_recording(self._recording(plain)))
        given = conditions_as_recorded(operations, profile, parse_layout(apart))
        sites = ("MPI_Allreduce",) if case.what == "sum" else ("MPI_Isend", "MPI_Waitall")
        faster = link_limited_machine(ranks // 2, CORES, FASTER * NIC_BYTES_PER_S)
        changes: dict[str, list[tuple[Run, list[Change], str]]] = {
            RATE: [
                (replace(plain, machine=faster), [settings_change([f"inter_node.bandwidth={FASTER}x"])], "")
            ],
            LAYOUT: [
                (replace(plain, layout=together), [layout_change(parse_layout(together), together)], "")
            ],
            WORK: [
                (
                    replace(plain, work_us=WORK_US / 2),
                    [computing_change(operations, site, 0.5) for site in sites],
                    "",
                )
            ],
            BALANCE: [(replace(plain, is_even=True), [balance_change(operations, "all")], "")],
            ALGORITHM: [
                (
                    self._forced(plain, forced),
                    [algorithm_change(operations, f"allreduce={name}")],
                    f", {name}",
                )
                for name, forced in ALGORITHMS.items()
                if case.what == "sum"
            ],
        }
        for kind in kinds:
            for changed, by, more in changes[kind]:
                simulated = predict_program(operations, given, by)
                speed_up = simulated.speed_up
                assert speed_up is not None
                measured = Estimate.exact(plain_s / self._run(changed))
                yield Check(kind, "SMPI", label + more, speed_up, measured, simulated.error, CONDITION)

    @staticmethod
    def _forced(plain: Run, algorithm: str) -> Run:
        return replace(plain, settings={"smpi/allreduce": algorithm})

    def _profile(self, machine: SimulatedMachine) -> Path:
        # Of 4 nodes: those of a machine are alike.
        folder = self.folder / "profile"
        if not (folder / "profile.json").exists():
            say("measuring the simulated machine")
            described = self.folder / "machine.json"
            described.write_text(json.dumps(replace(machine, nodes=4).to_json()))
            where = ["--launches", 1, "--launcher", f"simgrid:{described}", "--quiet"]
            measured_profile(where, folder, BUDGETS)
        return folder / "profile.json"

    def _folder(self, run: Run) -> Path:
        settings = "-".join((run.settings or {}).values())
        nic = f"{run.machine.nic_bandwidth_bytes_per_s:g}"
        even = "even" if run.is_even else "uneven"
        return self.folder / "-".join(
            map(str, (*run.case, run.layout, nic, f"{run.work_us:g}", even, settings or "own"))
        )

    def _run(self, run: Run) -> float:
        """The seconds of the slowest rank."""
        folder = self._folder(run)
        layout = parse_layout(run.layout)
        if not (folder / f"{layout.num_ranks - 1}.txt").exists():
            folder.mkdir(exist_ok=True)
            hosts, platform = folder / "hosts", folder / "platform.xml"
            hosts.write_text("".join(f"{core}\n" for core in cores_of_ranks(layout, run.machine)))
            platform.write_text(platform_xml(run.machine))
            configuration = smpi_configuration(run.machine, layout.num_ranks, hosts)
            configuration |= {"smpi/tmpdir": str(folder), "smpi/privatization": "dlopen"}
            configuration |= run.settings or {}
            words = [f"--cfg={name}:{value}" for name, value in configuration.items()]
            of_program = (*run.case, STEPS, run.work_us, "even" if run.is_even else "uneven", folder)
            command = [
                self.mpi.mpiexec,
                self.program,
                *words,
                "--log=root.thres:warning",
                platform,
                *of_program,
            ]
            subprocess.run(list(map(str, command)), env=os.environ | self.mpi.environment(), check=True)
        return max(float((folder / f"{rank}.txt").open().readline()) for rank in range(layout.num_ranks))

    def _recording(self, run: Run) -> Path:
        recording = self._folder(run) / "rec"
        if not recording.exists():
            layout = parse_layout(run.layout)
            nodes = layout.node.tolist()
            on_disk(
                recording,
                layout.num_ranks,
                [(0, 1, 1, 8)],
                host=lambda rank: f"node{nodes[rank]}",
                boot="one",
            )
            for rank in range(layout.num_ranks):
                rows = _records(self._folder(run) / f"{rank}.txt")
                (recording / f"rank-{rank}.trace").write_bytes(trace_file(rows, len(rows)))
        return recording


def _records(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a trace, of what a rank has written down."""
    first, *lines = path.read_text().splitlines()
    end_s = float(first)
    rows: list[tuple[Any, ...]] = [(-1.0, 0.0, INIT, CALL, 0, -1, -1, ONE_CALL, 0, 0, None)]
    started: list[tuple[Any, ...]] = []
    for text in lines:
        begin_s, until_s = map(float, text.split()[:2])
        call, peer, size, request = map(int, text.split()[2:])
        if call == _SEND:
            rows.append((begin_s, until_s, ISEND, SENT, _WORLD, peer, 0, ONE_CALL, size, request, None))
            started.append((ISEND, SENT, _WORLD, peer, 0, COMPLETION, size, request, begin_s))
        elif call == _RECEIVE:
            rows.append((begin_s, until_s, IRECV, CALL, _WORLD, peer, -1, ONE_CALL, 0, request, None))
            started.append((IRECV, RECEIVED, _WORLD, peer, 0, MESSAGE, size, request, begin_s))
        elif call == _WAIT:
            rows.append((begin_s, until_s, WAITALL, CALL, 0, -1, -1, ONE_CALL, 0, 0, None))
            rows += [(begin_s, until_s, *one) for one in started]
            started = []
        else:
            rows.append((begin_s, until_s, ALLREDUCE, CALL, _WORLD, -1, -1, ONE_CALL, size, 0, None))
    rows.append((end_s, end_s + 1e-3, FINALIZE, CALL, 0, -1, -1, ONE_CALL, 0, 0, None))
    return rows
