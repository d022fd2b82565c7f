"""Is what a recorder leaves readable, whenever a rank is killed?

Four ranks exchange messages of 100 bytes without end under `earlybird record`; at a random moment, from the
start of the processes on, a random one of them is killed (SIGKILL). A recording counts as unreadable if it
cannot be read, as wrong if the bytes of a pair are not those of its messages, and as hung if the job does not
end. If no rank had come to the end of MPI_Init, there is nothing to read, and the folder is removed. With
Intel MPI ranks are killed after MPI_Init only: its mpiexec does not end if one dies before, with or without
a recorder. About five minutes for 200 kills of an MPI.
"""

import argparse
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.commands import EARLYBIRD, chosen_flavours, say
from earlybird.data.errors import InputError
from earlybird.data.recording import Recording, load_recording
from earlybird.machine.flavours import Flavour
from earlybird.present.render.terminal import print_rows

KILLS, RANKS, MESSAGE_BYTES = 200, 4, 100
LONGEST_DELAY_S = 1.0  # after the first process of the program has been seen
START_S, END_S = 30.0, 30.0  # a job that takes longer to start, or to end after the kill, hangs
READABLE, NOTHING, UNREADABLE, WRONG, HUNG = "readable", "nothing yet", "unreadable", "wrong", "hung"
ENDLESS = f"""#include <mpi.h>
int main(int argc, char **argv) {{
  static char sent[{MESSAGE_BYTES}], received[64][{MESSAGE_BYTES}];
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (;;) {{
    MPI_Request requests[128];
    for (int r = 0; r < size; r++) {{
      MPI_Irecv(received[r], {MESSAGE_BYTES}, MPI_CHAR, r, 0, MPI_COMM_WORLD, &requests[2 * r]);
      MPI_Isend(sent, {MESSAGE_BYTES}, MPI_CHAR, r, 0, MPI_COMM_WORLD, &requests[2 * r + 1]);
    }}
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
  }}
}}
"""


def main(arguments: Sequence[str] = ()) -> int:
    """Kill so many times and print a table; 1 unless every recording is readable and right."""
    parser = argparse.ArgumentParser(prog="python -m bench recorder-kills", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"of each MPI; default {KILLS}")
    parser.add_argument("--seed", type=int, default=0, help="of the moments and ranks; default 0")
    options = parser.parse_args(list(arguments))
    if options.kills < 1:
        say(f"recorder-kills: --kills is {options.kills}; give 1 or more")
        return 2
    flavours = chosen_flavours(options.mpi)
    rows, is_good = [], True
    for flavour in flavours:
        found = _campaign(flavour, options.kills, random.Random(options.seed))
        counts = [str(found[how]) for how in (READABLE, NOTHING, UNREADABLE, WRONG, HUNG)]
        rows.append([flavour.name, str(options.kills), *counts])
        is_good = is_good and found[READABLE] + found[NOTHING] == options.kills
    print_rows(["MPI", "kills", READABLE, NOTHING, UNREADABLE, WRONG, HUNG], rows, left=["MPI"])
    return int(not is_good)


def _campaign(flavour: Flavour, kills: int, chosen: random.Random) -> Counter[str]:
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        program = _compiled(flavour, Path(folder))
        begin_s = time.monotonic()
        for k in range(kills):
            how = _kill_once(flavour, program, Path(folder) / f"rec-{k}", chosen)
            found[how] += 1
            left_s = (time.monotonic() - begin_s) / (k + 1) * (kills - k - 1)
            if how not in (READABLE, NOTHING) or k % 20 == 19:
                say(f"{flavour.name}: kill {k + 1} of {kills}: {how}; {left_s:.0f} s left")
    return found


def _compiled(flavour: Flavour, folder: Path) -> Path:
    source, program = folder / "endless.c", folder / "endless"
    source.write_text(ENDLESS)
    subprocess.run([flavour.mpicc, source, "-O1", "-o", program], check=True, env=flavour.environment())
    return program


def _kill_once(flavour: Flavour, program: Path, recording: Path, chosen: random.Random) -> str:
    launch = [
        "mpiexec",
        "-n",
        str(RANKS),
        *(["--oversubscribe"] * (flavour.family == "openmpi")),
        str(program),
    ]
    job = subprocess.Popen(
        [EARLYBIRD, "record", "-o", recording, "--mpi", flavour.name, "--", *launch],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        end_s = time.monotonic() + START_S
        while not _has_begun(flavour, program, recording) and job.poll() is None and time.monotonic() < end_s:
            time.sleep(0.005)
        time.sleep(chosen.uniform(0, LONGEST_DELAY_S))
        if ranks := _processes_of(program):
            os.kill(chosen.choice(sorted(ranks)), signal.SIGKILL)
        job.wait(END_S)
    except subprocess.TimeoutExpired:
        return HUNG
    finally:
        for process in _processes_of(program):
            os.kill(process, signal.SIGKILL)
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    if not recording.exists():
        return NOTHING
    try:
        return READABLE if _is_right(load_recording(recording)) else WRONG
    except InputError as error:
        say(str(error))
        return UNREADABLE


def _has_begun(flavour: Flavour, program: Path, recording: Path) -> bool:
    if flavour.family == "intel":
        return len(list(recording.glob("rank-*"))) == RANKS
    return bool(_processes_of(program))


def _processes_of(program: Path) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/exe") == str(program):
                found.append(int(name))
        except OSError:  # it has ended
            continue
    return found


def _is_right(recording: Recording) -> bool:
    both = recording.sent().by_pair(), recording.received().by_pair()
    return all(bool((totals.bytes == MESSAGE_BYTES * totals.messages).all()) for totals in both)
