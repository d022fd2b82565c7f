"""How long does `earlybird where` take for a thousand ranks?

The folder of a job that hangs is written without any MPI, with the pages of ranks of this node, or with the
files of agents of nodes with 40 ranks each, which are written again every second: a pair of ranks that wait
for each other, the others in MPI_Allreduce; a ring in which each waits for the next; and the first again with
full tables of messages, 1024 combinations of peer and tag on each rank. The time is that of the command, as
JSON. The status is 1 if it takes more than 5 s, or if the answer is wrong. About two minutes.
"""

import argparse
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.commands import EARLYBIRD
from earlybird.data.errors import InputError
from earlybird.data.units import format_seconds
from earlybird.present.render.terminal import print_rows
from tests.stuck_job import Agents, pages_of_a_job, write_pages, write_ranks

RANKS, EACH, ROUNDS, MAX_S, PERIOD_S = 1000, 40, 3, 5.0, 1.0
HERE, ON_NODES = "this node", "nodes"
FULL = 1024
PAIR, RING, TABLES = "a pair", "a ring", "a pair, full tables"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and print a table; 1 if an answer is wrong or late."""
    parser = argparse.ArgumentParser(prog="python -m bench stuck-ranks", description=__doc__)
    parser.add_argument("--ranks", type=int, default=RANKS, help=f"default {RANKS}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    options = parser.parse_args(list(arguments))
    if options.ranks < EACH or options.rounds < 1:
        raise InputError(f"--ranks is {options.ranks}; give {EACH} or more, and 1 round or more")
    rows, is_good = [], True
    for shape in (PAIR, RING, TABLES):
        for where in (HERE, ON_NODES):
            with tempfile.TemporaryDirectory(prefix="stuck-ranks-") as folder:
                times_s, is_right = _measured(Path(folder) / "rec", shape, where, options)
            longest = max(times_s)
            is_good = is_good and is_right and longest <= MAX_S
            num = f"{-(-options.ranks // EACH)} {where}" if where == ON_NODES else where
            median = format_seconds(float(np.median(times_s)))
            rows.append([shape, num, median, format_seconds(longest), "yes" if is_right else "no"])
    print_rows(["ranks wait in", "on", "median", "longest", "right"], rows, left=["ranks wait in", "on"])
    return int(not is_good)


def _measured(folder: Path, shape: str, where: str, options: argparse.Namespace) -> tuple[list[float], bool]:
    """Return the times of the command, and whether its answers are right."""
    num = options.ranks
    awaited = {rank: (rank + 1) % num for rank in range(num)} if shape == RING else {1: 3, 3: 1}
    channels = {"num_channels": FULL} if shape == TABLES else {}
    pages = list(pages_of_a_job(num, awaited, pid=os.getpid(), **channels))
    write_ranks(folder, num)
    is_over = threading.Event()
    agents = None
    if where == HERE:
        write_pages(folder, pages)
    else:
        agents = threading.Thread(target=_write_again, args=(Agents(folder, pages, EACH), is_over))
        agents.start()
        time.sleep(2 * PERIOD_S)
    times_s, is_right = [], True
    try:
        for _ in range(options.rounds):
            begin_s = time.perf_counter()
            ran = subprocess.run([EARLYBIRD, "where", folder, "--json"], capture_output=True, check=True)
            times_s.append(time.perf_counter() - begin_s)
            answer = json.loads(ran.stdout)
            cycle = list(range(num)) if shape == RING else [1, 3]
            is_right = is_right and (answer["verdict"], answer["cycle"]) == ("deadlock", cycle)
    finally:
        is_over.set()
        if agents is not None:
            agents.join()
    return times_s, is_right


def _write_again(agents: Agents, is_over: threading.Event) -> None:
    while not is_over.is_set():
        agents.write()
        is_over.wait(PERIOD_S)
