"""Does anything of a measurement stay when earlybird is ended at any moment?

`earlybird measure` is ended by each signal in turn, SIGKILL, SIGTERM and SIGHUP, at a random moment of its
first launch, from the start of the launcher on. A process of it that is there 15 s later counts as left, as
does shared memory of an MPI that no process has. About two minutes for 60 of an MPI on an idle machine.
"""

import argparse
import os
import random
import signal
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

from bench.commands import EARLYBIRD, chosen_flavours, say
from earlybird.launch import shared_memory
from earlybird.launch.process import MARKER
from earlybird.present.render.terminal import print_rows

KILLS = 60
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
LONGEST_DELAY_S = 0.5  # after the first process of the job has been seen
START_S, END_S = 60.0, 15.0
CLEAN, PROCESSES, MEMORY = "nothing", "processes", "shared memory"
_MARK = "EARLYBIRD_BENCH_KILLS"


def main(arguments: Sequence[str] = ()) -> int:
    """End so many measurements and print a table; 1 unless nothing of any is left."""
    parser = argparse.ArgumentParser(prog="python -m bench session-kills", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"of each MPI; default {KILLS}")
    parser.add_argument("--seed", type=int, default=0, help="of the moments; default 0")
    options = parser.parse_args(list(arguments))
    if options.kills < 1:
        say(f"session-kills: --kills is {options.kills}; give 1 or more")
        return 2
    rows, is_good = [], True
    for flavour in chosen_flavours(options.mpi):
        left, chosen = Counter[str](), random.Random(options.seed)
        for k in range(options.kills):
            number = SIGNALS[k % len(SIGNALS)]
            what = _end_once(flavour.name, number, chosen.uniform(0, LONGEST_DELAY_S))
            left[what] += 1
            if what != CLEAN:
                say(f"session-kills: {what} after {number.name} number {k} on {flavour.name}")
        rows.append(
            [flavour.name, str(options.kills), *(str(left[what]) for what in (CLEAN, PROCESSES, MEMORY))]
        )
        is_good = is_good and left[CLEAN] == options.kills
    print_rows(["MPI", "ended", f"left: {CLEAN}", PROCESSES, MEMORY], rows, left=["MPI"])
    return int(not is_good)


def _end_once(mpi: str, number: signal.Signals, delay_s: float) -> str:
    """End one measurement; what of it is left."""
    mark, before = uuid.uuid4().hex, _segments()
    with tempfile.TemporaryDirectory() as folder:
        command = ["measure", "pingpong", "--mpi", mpi, "--launches", "100", "--budget", "600s", "--quiet"]
        process = subprocess.Popen(
            [EARLYBIRD, *command, "-o", Path(folder) / "run"],
            env=os.environ | {_MARK: mark}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _await(lambda: process.poll() is not None or _has_job(mark), START_S)
            if not _has_job(mark):
                raise SystemExit(f"earlybird {' '.join(command)} starts no job; see what it says")
            time.sleep(delay_s)
            process.send_signal(number)
            process.wait()
        finally:
            process.kill()
            process.wait()
        if not _await(lambda: not _processes(mark), END_S):
            return PROCESSES
        return CLEAN if _await(lambda: _segments() <= before, END_S) else MEMORY


def _await(is_so, limit_s: float) -> bool:
    end_s = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.02)
    return True


def _has_job(mark: str) -> bool:
    return any(MARKER in environment for environment in _processes(mark))


def _processes(mark: str) -> list[dict[str, str]]:
    """The environments of the processes of a measurement."""
    environments = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if environment.get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                environments.append(environment)
        except (psutil.Error, OSError):
            continue
    return environments


def _segments() -> set[str]:
    """Shared memory of MPIs that no process has."""
    mapped = shared_memory.mapped_files()
    names = os.listdir(shared_memory.FOLDER)
    return {
        name
        for name in names
        if name.startswith(shared_memory.PREFIXES) and str(shared_memory.FOLDER / name) not in mapped
    }
