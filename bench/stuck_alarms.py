"""Does `--stuck --stop` ever accuse a program that only takes long?

Runs programs that end by themselves under `record --stuck 3s --stop` and `exec --stuck 3s --stop`: some of
its own, in which ranks compute, sleep or poll for `--seconds` while others wait, and those of a file
(`--programs`), one in each line: name, number of ranks, folder to run in, command. `{mpi}` therein stands for
the MPI. An alarm is an answer deadlock, buffering, mismatch, missing, collective or ended, or a command that
`--stop` ends. The status is 1 if there is an alarm, or if a program fails.
"""

import argparse
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.commands import EARLYBIRD, chosen_flavours, say
from bench.stuck_suites import ANSWER
from earlybird.analysis.stuck.verdict import FOREVER
from earlybird.data.errors import InputError
from earlybird.machine.flavours import Flavour
from earlybird.present.render.terminal import print_rows

SECONDS, STUCK_S, RANKS, LIMIT_S = 10.0, 3.0, 4, 900.0
RECORD, EXEC = "record", "exec"
_FIELDS = 3  # before the command
_STOPPED = "--stop ends the command"
# What the own programs do, and what is named by a mode.
MODES = {
    "computes": "a rank computes, the others are in MPI_Allreduce",
    "sleeps": "a rank sleeps, the others are in MPI_Allreduce",
    "chain": "a rank computes, each other one receives from the one before it",
    "groups": "half of the ranks compute, the other half is in a barrier of its own and then in one of all",
    "master": "rank 0 polls with MPI_Iprobe for results, the others compute",
    "workers": "the others poll with MPI_Test for work, rank 0 computes",
    "thread": "rank 1 waits for a message of a second thread of rank 0, which computes; rank 0 for rank 1",
    "sleeping-thread": "the same, and the second thread sleeps",
}
SOURCE = r"""
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static double seconds;
static const char *mode;
static int is(const char *name) { return strcmp(mode, name) == 0; }
static void work(void) {
  if (is("sleeps") || is("sleeping-thread")) sleep((unsigned)seconds);
  else for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) continue;
}
static void *work_and_send(void *nothing) {
  int value = 1;
  work();
  MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  return nothing;
}
int main(int argc, char **argv) {
  int rank, size, provided, value = 1, sum = 0;
  mode = argv[1];
  seconds = atof(argv[2]);
  MPI_Init_thread(&argc, &argv, strstr(mode, "thread") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is("computes") || is("sleeps")) {
    if (rank == 1) work();
  } else if (is("chain")) {
    if (rank > 0) MPI_Recv(&value, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else work();
    if (rank < size - 1) MPI_Send(&value, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
  } else if (is("groups")) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank % 2) work();
    MPI_Barrier(half);
    MPI_Comm_free(&half);
  } else if (is("master")) {
    for (int done = 0, is_there; rank == 0 && done < size - 1; done += is_there) {
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &is_there, &status);
      if (is_there) MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank > 0) work();
    if (rank > 0) MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
  } else if (is("workers")) {
    MPI_Request request;
    int is_done = 0;
    if (rank == 0) work();
    for (int r = 1; rank == 0 && r < size; r++) MPI_Send(&value, 1, MPI_INT, r, 1, MPI_COMM_WORLD);
    if (rank > 0) MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
    while (rank > 0 && !is_done) MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
  } else if (provided == MPI_THREAD_MULTIPLE && rank < 2) {
    pthread_t second;
    if (rank == 0) pthread_create(&second, NULL, work_and_send, NULL);
    MPI_Recv(&value, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    if (rank == 0) pthread_join(second, NULL);
  }
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum != size;
}
"""


@dataclass(frozen=True)
class Job:
    """A program that ends by itself."""

    name: str
    num_ranks: int
    folder: Path
    command: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How a job ended under `--stuck`: `verdicts` are those of the answers that were printed."""

    job: Job
    how: str
    mpi: str
    run_s: float
    status: int | None
    verdicts: tuple[str, ...]
    is_stopped: bool

    @property
    def is_alarm(self) -> bool:
        return self.is_stopped or any(verdict in FOREVER for verdict in self.verdicts)


def main(arguments: Sequence[str] = ()) -> int:
    """Run the programs and print a table; 1 if one is accused, or fails."""
    parser = argparse.ArgumentParser(prog="python -m bench stuck-alarms", description=__doc__)
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--programs", type=Path, help="file with a program in each line, see above")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"of work of the own programs; default {SECONDS:g}"
    )
    parser.add_argument(
        "--stuck", type=float, default=STUCK_S, help=f"seconds of --stuck; default {STUCK_S:g}"
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="programs whose names match")
    options = parser.parse_args(list(arguments))
    if not 0 < options.seconds < LIMIT_S or options.stuck <= 0:
        raise InputError(f"--seconds and --stuck must be above 0, --seconds less than {LIMIT_S:g}")
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="stuck-alarms-") as folder:
        for flavour in chosen_flavours(options.mpi):
            jobs = [*_own(flavour, Path(folder), options.seconds)]
            jobs += read_programs(options.programs, flavour.name) if options.programs else []
            for job in jobs:
                if not re.search(options.only, job.name):
                    continue
                for how in (RECORD, EXEC):
                    outcome = _run(flavour, job, how, options.stuck, Path(folder))
                    outcomes.append(outcome)
                    if outcome.is_alarm or outcome.status:
                        say(f"{job.name} with {how} and {flavour.name}: status {outcome.status}")
    return report(outcomes)


def _own(flavour: Flavour, folder: Path, seconds: float) -> Iterator[Job]:
    source, binary = folder / "works.c", folder / f"works-{flavour.name}"
    source.write_text(SOURCE)
    subprocess.run(
        [flavour.mpicc, "-g", "-pthread", source, "-o", binary], check=True, env=flavour.environment()
    )
    for mode in MODES:
        yield Job(mode, RANKS, folder, (str(binary), mode, f"{seconds:g}"))


def read_programs(path: Path, mpi: str) -> list[Job]:
    """Return the programs of a file; raise InputError for a line that names none."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a file of programs") from error
    jobs = []
    for number, line in enumerate(lines, 1):
        words = shlex.split(line.replace("{mpi}", mpi), comments=True)
        if not words:
            continue
        if len(words) <= _FIELDS or not words[1].isdecimal() or not int(words[1]):
            raise InputError(f"{path}:{number} is {line!r}; give name, number of ranks, folder and command")
        jobs.append(Job(words[0], int(words[1]), Path(words[2]), tuple(words[_FIELDS:])))
    return jobs


def _run(flavour: Flavour, job: Job, how: str, stuck_s: float, folder: Path) -> Outcome:
    launch = ["mpiexec", "-n", str(job.num_ranks)]
    launch += ["--oversubscribe"] * (flavour.family == "openmpi")
    recording = folder / f"rec-{time.monotonic_ns()}"
    command = [
        str(EARLYBIRD), how, "-o", str(recording), "--mpi", flavour.name, "--stuck", f"{stuck_s:g}s",
        "--stop", *(["--json"] if how == RECORD else []), "--", *launch, *job.command,
    ]  # fmt: skip
    begin_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL, cwd=job.folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        try:
            status: int | None = process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            status = None
        errors.seek(0)
        text = errors.read()
    verdicts = tuple(found.lower() for found in ANSWER.findall(text))
    return Outcome(
        job, how, flavour.name, time.monotonic() - begin_s, status, verdicts, _STOPPED in text
    )  # fmt: skip


def report(outcomes: Sequence[Outcome]) -> int:
    """Print a line for each program, and return the status."""
    rows = [
        [
            one.job.name, one.mpi, one.how, f"{one.run_s:.0f} s",
            ", ".join(f"{verdict} {num}" for verdict, num in Counter(one.verdicts).items()) or "none",
            "alarm" if one.is_alarm else "ended" if one.status == 0 else f"failed ({one.status})",
        ]
        for one in outcomes
    ]  # fmt: skip
    left = ["program", "MPI", "with", "answers", "result"]
    print_rows(["program", "MPI", "with", "run", "answers", "result"], rows, left=left)
    num_alarms = sum(one.is_alarm for one in outcomes)
    print(f"{len(outcomes)} runs, {num_alarms} alarms")
    return int(not outcomes or num_alarms > 0 or any(one.status != 0 for one in outcomes))
