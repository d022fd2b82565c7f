"""What `earlybird record` adds to the calls of a program.

A program of two ranks times its calls alone and with the recorder preloaded, in turn and in a new order in
every round; differences and ratios are taken round by round. At most 100 ns for each call, and 2 % of an 8
KiB ping-pong, are allowed. With --events, the program also runs with a trace, which may take 60 ns for each
call beyond recording without one. With --pages, the program also runs with pages alone, as below `exec
--stuck`: at most 10 ns for each blocking call, and 30 ns for each request, are allowed, but for the
ping-pong, which varies by more. The load of the machine is printed: on one that is not idle the times are
those of its scheduler. With --beside, the program also runs below another tool, such as "eztrace -t openmpi".
About a minute for an MPI.
"""

import argparse
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.commands import chosen_flavours, say
from earlybird.data.recording import recording_into
from earlybird.data.units import format_seconds
from earlybird.launch.running_ranks import progress_of
from earlybird.machine.flavours import Flavour
from earlybird.models.statistics import median_interval
from earlybird.present.render.terminal import print_rows
from earlybird.toolchain.build import RECORDER, library_path

ROUNDS = 12
_WATCHED_EVERY_S = 0.1
# The ways to run the program.
_ALONE, _RECORDED, _TRACED, _PAGES, _BESIDE = "alone", "recorded", "traced", "pages", "beside"
_NUMBER = re.compile(r"[\d.]+(e[-+]\d+)?")
ALLOWED_S, ALLOWED_RATIO = 100e-9, 1.02
ALLOWED_TRACED_S = 60e-9  # beyond recording alone
ALLOWED_BLOCKING_S, ALLOWED_REQUEST_S = 10e-9, 30e-9  # with pages alone
PING_PONG = "8 KiB ping-pong"
# How many calls of the MPI each repetition of the program's operations makes.
CALLS = {
    "MPI_Send to MPI_PROC_NULL": 1,
    "MPI_Isend, MPI_Irecv, MPI_Waitall": 3,
    "MPI_Startall, MPI_Waitall": 2,
    "MPI_Iprobe": 1,
    "MPI_Allreduce of one rank": 1,
    PING_PONG: 2,
    "512 MPI_Irecv, 512 MPI_Isend, MPI_Waitall": 1025,
}
# How many of them are requests; the others block.
REQUESTS = {
    "MPI_Isend, MPI_Irecv, MPI_Waitall": 2,
    "MPI_Startall, MPI_Waitall": 2,
    "512 MPI_Irecv, 512 MPI_Isend, MPI_Waitall": 1024,
}
PROGRAM = r"""#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static char sent[8192], received[8192];
static double one = 1, sum;
static MPI_Request persistent[2];
static void send(void) { MPI_Send(sent, 8, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD); }
static void exchange(void) {
  MPI_Request requests[2];
  MPI_Irecv(received, 8, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(sent, 8, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
static void start(void) {
  MPI_Startall(2, persistent);
  MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
}
static void probe(void) {
  int flag;
  MPI_Iprobe(0, 7, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}
static void reduce(void) { MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF); }
static int rank;
static void ping_pong(void) {
  if (rank == 0) MPI_Send(sent, 8192, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  MPI_Recv(received, 8192, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(sent, 8192, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
}
enum { MANY = 512 };
static void exchange_many(void) {
  static char into[MANY][8];
  MPI_Request requests[2 * MANY];
  for (int k = 0; k < MANY; k++) MPI_Irecv(into[k], 8, MPI_CHAR, 0, k, MPI_COMM_SELF, &requests[k]);
  for (int k = 0; k < MANY; k++) MPI_Isend(sent, 8, MPI_CHAR, 0, k, MPI_COMM_SELF, &requests[MANY + k]);
  MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
}
static void measure(void (*operation)(void), int times) {
  enum { NUM = 101 };
  double found[NUM];
  for (int k = 0; k < NUM; k++) {
    const double begin = MPI_Wtime();
    for (int t = 0; t < times; t++) operation();
    found[k] = (MPI_Wtime() - begin) / times;
  }
  qsort(found, NUM, sizeof *found, compare);
  if (rank == 0) printf("%.10g\n", found[NUM / 2]);
}
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Recv_init(received, 8, MPI_CHAR, 0, 0, MPI_COMM_SELF, &persistent[0]);
  MPI_Send_init(sent, 8, MPI_CHAR, 0, 0, MPI_COMM_SELF, &persistent[1]);
  usleep(300000); /* whoever watches the pages has looked */
  measure(send, 2000);
  measure(exchange, 2000);
  measure(start, 2000);
  measure(probe, 2000);
  measure(reduce, 2000);
  measure(ping_pong, 200);
  measure(exchange_many, 10);
  MPI_Request_free(&persistent[0]);
  MPI_Request_free(&persistent[1]);
  return MPI_Finalize();
}
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Run the program so many rounds and print a table for each MPI; 1 if a call costs more than allowed."""
    parser = argparse.ArgumentParser(prog="python -m bench recorder-cost", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--events", metavar="N|all", default="0", help="also with --events; default 0")
    parser.add_argument("--pages", action="store_true", help="also with pages alone, as exec --stuck")
    parser.add_argument(
        "--beside", metavar="COMMAND", type=shlex.split, default=[],
        help="another tool: what precedes the program of each rank",
    )  # fmt: skip
    options = parser.parse_args(list(arguments))
    if options.rounds < 1:
        say(f"recorder-cost: --rounds is {options.rounds}; give 1 or more")
        return 2
    flavours = chosen_flavours(options.mpi)
    is_met = True
    for flavour in flavours:
        with tempfile.TemporaryDirectory() as folder:
            times_s = _measure(flavour, Path(folder), options.rounds, options)
        is_met = report(flavour.name, times_s[_ALONE], times_s[_RECORDED]) and is_met
        if options.events != "0":
            is_met = report_trace(flavour.name, times_s[_RECORDED], times_s[_TRACED]) and is_met
        if options.pages:
            is_met = report_pages(flavour.name, times_s[_ALONE], times_s[_PAGES]) and is_met
        if options.beside:
            print_costs(shlex.join(options.beside), times_s[_ALONE], times_s[_BESIDE])
    return int(not is_met)


def _measure(
    flavour: Flavour, folder: Path, rounds: int, options: argparse.Namespace
) -> dict[str, np.ndarray]:
    """Seconds per repetition, (rounds, operations), by the way to run the program."""
    source, program = folder / "calls.c", folder / "calls"
    source.write_text(PROGRAM)
    environment = flavour.environment()
    subprocess.run([flavour.mpicc, "-O2", source, "-o", program], env=environment, check=True)
    recorder = library_path(flavour).with_name(RECORDER)
    events, beside = options.events, options.beside
    ways = [_ALONE, _RECORDED]
    more_ways = {_TRACED: events != "0", _PAGES: options.pages, _BESIDE: bool(beside)}
    ways += [way for way, is_wanted in more_ways.items() if is_wanted]
    times_s: dict[str, list[list[float]]] = {way: [] for way in ways}
    order = random.Random(0)
    for k in range(rounds):
        for way in order.sample(ways, len(ways)):
            more: dict[str, str] = {}
            recording = folder / f"rec-{way}-{k}"
            if way in (_RECORDED, _TRACED, _PAGES):
                with recording_into(recording, {}):
                    pass
                more = {
                    "LD_PRELOAD": str(recorder),
                    "EARLYBIRD_RECORD": str(recording),
                    "EARLYBIRD_RECORD_EVENTS": events if way == _TRACED else "0",
                    "EARLYBIRD_RECORD_EVENTS_BYTES": str(1 << 30),
                    "EARLYBIRD_RECORD_PAGES": "only" if way == _PAGES else "",
                }
            launched = [*beside, program] if way == _BESIDE else [program]
            with _watched(recording if way == _PAGES else None):
                times_s[way].append(_run(flavour, launched, environment | more, folder))
            # Of --events all there is a GiB in every round.
            for left in folder.glob("rec-*"):
                shutil.rmtree(left)
        say(f"{flavour.name}: round {k + 1} of {rounds}, load {os.getloadavg()[0]:.1f}")
    return {way: np.array(values) for way, values in times_s.items()}


@contextmanager
def _watched(recording: Path | None) -> Iterator[None]:
    """Look at the pages as `exec --stuck` does, more often."""
    is_over = threading.Event()

    def look() -> None:
        while recording is not None and not is_over.wait(_WATCHED_EVERY_S):
            progress_of(recording)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _run(
    flavour: Flavour, launched: Sequence[str | Path], environment: Mapping[str, str], folder: Path
) -> list[float]:
    ended = subprocess.run(
        ["mpiexec", "-n", "2", *launched], env=os.environ | environment, cwd=folder, capture_output=True,
        text=True,
    )  # fmt: skip
    if ended.returncode != 0:
        say(ended.stderr)
        sys.exit(f"recorder-cost: {launched[0]} of {flavour.name} ended with status {ended.returncode}")
    # Another tool prints lines of its own.
    return [float(line) for line in ended.stdout.splitlines() if _NUMBER.fullmatch(line)]


def report(mpi: str, alone: np.ndarray, recorded: np.ndarray) -> bool:
    """Print what each operation takes; whether all are within the limits."""
    more_s, ratios = print_costs(f"{mpi}, medians of {len(alone)} rounds", alone, recorded)
    is_met = all(
        ratio <= ALLOWED_RATIO if name == PING_PONG else one_s <= ALLOWED_S
        for name, one_s, ratio in zip(CALLS, more_s, ratios, strict=True)
    )
    print(f"at most 100 ns for each call, 1.02 for the ping-pong: {'met' if is_met else 'missed'}")
    return is_met


def report_trace(mpi: str, recorded: np.ndarray, traced: np.ndarray) -> bool:
    """Print what the trace adds to each operation; whether all are within the limit."""
    more_s, _ = print_costs(f"{mpi}, with --events", recorded, traced, "recorded")
    names = list(CALLS)
    is_met = all(more_s[k] <= ALLOWED_TRACED_S for k in range(len(names)) if names[k] != PING_PONG)
    print(f"at most 60 ns for each call more than without --events: {'met' if is_met else 'missed'}")
    return is_met


def report_pages(mpi: str, alone: np.ndarray, pages: np.ndarray) -> bool:
    """Print what pages add to each operation; whether all are within the limits."""
    more_s, _ = print_costs(f"{mpi}, with pages alone", alone, pages)
    is_met = True
    for name, each_s in zip(CALLS, more_s, strict=True):
        num, requests = CALLS[name], REQUESTS.get(name, 0)
        # A start of all is one call; others start one request each.
        blocking = num if "Startall" in name else num - requests
        if name == PING_PONG:
            continue
        is_met = is_met and each_s * num <= blocking * ALLOWED_BLOCKING_S + requests * ALLOWED_REQUEST_S
    print(f"at most 10 ns for each blocking call, 30 ns for each request: {'met' if is_met else 'missed'}")
    return is_met


def print_costs(
    title: str, alone: np.ndarray, other: np.ndarray, before: str = "alone"
) -> tuple[list[float], list[float]]:
    """Print what `other` adds to each operation; return the seconds for each call, and the ratios."""
    print(f"\n{title}")
    rows, added_s, ratios = [], [], []
    for k, (name, calls) in enumerate(CALLS.items()):
        more_s, ratio = (other - alone)[:, k] / calls, other[:, k] / alone[:, k]
        low_s, high_s = median_interval(more_s)
        added_s.append(float(np.median(more_s)))
        ratios.append(float(np.median(ratio)))
        rows.append([
            name, format_seconds(float(np.median(alone[:, k]))), f"{added_s[-1] * 1e9:+.0f} ns",
            f"{low_s * 1e9:+.0f} .. {high_s * 1e9:+.0f}", f"{ratios[-1]:.3f}",
        ])  # fmt: skip
    header = ["calls", before, "more for each", "from .. to", "ratio"]
    print_rows(header, rows, left=header[:1])
    return added_s, ratios
