"""What `earlybird advise program` advises for real programs, against the programs run with each change.

A file names the programs, one in each line: name, layout, another layout, folder to run in, command. `{mpi}`
therein stands for the MPI, as each has a program of its own. Every program is recorded on 4 virtual nodes;
then it runs plain and with each change that is a layout, a setting or another MPI, by turns and recorded. The
measured speed-up is the median of the ratios of the runs, from MPI_Init to the end. Changes that were advised
and are slower are named, and others that are faster than predicted. About 10 minutes for an MPI and six
programs.
"""

import argparse
import contextlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import EARLYBIRD, chosen_flavours, earlybird, say, virtual_cluster
from bench.program_checks import Check, announce, fitted_profile, measured_speed_up, report, settings_of
from earlybird.data.advice import Advice, advice_from_json
from earlybird.data.errors import InputError
from earlybird.data.files import write_json
from earlybird.data.layout import parse_layout
from earlybird.data.recording import load_recording
from earlybird.data.schema import Estimate
from earlybird.data.simulated_program import simulated_program_from_json
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.record.advice import AS_RECORDED
from earlybird.record.program_changes import COLLECTIVE, LAYOUT, OTHER_MPI

NODES, RATE = 4, "1gbit"
SIZES = "8,1KiB,16KiB,256KiB"
OPERATIONS = "bcast,reduce,allreduce"
RANKS = "4,8"
ROUNDS = 5
LIMIT_S = 120.0  # of a launch
# The advised change counts as wrong, or another one as missed, where the measured interval excludes this.
CLEARLY = 1.05
_FIELDS = 4  # before the command


@dataclass(frozen=True)
class Program:
    """A program and where it runs."""

    name: str
    layout: str
    other_layout: str
    folder: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """A change of a whole run, as the advice calls it, how to launch it, and the predicted speed-up."""

    kind: str
    text: str
    name: str
    speed_up: Estimate
    layout: str
    mpi: str
    settings: Mapping[str, str]


class Unusable(Exception):
    """A launch that failed or hung."""


def main(arguments: Sequence[str] = ()) -> int:
    """Record, advise, run and print a table; 1 if advice contradicts what was measured."""
    options = _parser().parse_args(list(arguments))
    if options.programs is None:
        say("program-advice: left out, as no --programs are given")
        return 0
    if options.rounds < 1:
        raise InputError(f"--rounds is {options.rounds}; give 1 or more")
    mpis = [flavour.name for flavour in chosen_flavours(options.mpi)]
    programs = read_programs(options.programs)
    found: list[Check] = []
    contradicted: list[str] = []
    try:
        with _folder(options.folder) as folder, virtual_cluster(NODES, options.rate) as cluster:
            bench = _Bench(folder, cluster, options.rate, mpis, options.rounds)
            for program in programs:
                for mpi in mpis:
                    for check, wrong in bench.checks_of(program, mpi):
                        found.append(check)
                        announce(check)
                        contradicted += [wrong] if wrong else []
    finally:
        # Also what was measured before Ctrl-C.
        if found:
            report(found)
            print("\n".join(["", *contradicted] if contradicted else ["no check contradicts the advice"]))
        if options.json is not None and found:
            checks = [one.to_json() for one in found]
            write_json(options.json, {"checks": checks, "contradicted": contradicted})
    return int(not found or bool(contradicted))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench program-advice", description=__doc__)
    parser.add_argument("--programs", type=Path, help="file with a program in each line, see above")
    parser.add_argument("--mpi", action="append", help="a flavour; repeat for several; default all built")
    parser.add_argument("--rate", default=RATE, help=f"of the virtual links; default {RATE}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"pairs of runs; default {ROUNDS}")
    parser.add_argument(
        "--folder", type=Path, help="keep recordings and profiles; profiles there are used again"
    )
    parser.add_argument("--json", type=Path, help="write every check here")
    return parser


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    """`kept`, or one that lives as long as the block."""
    if kept is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()


def read_programs(path: Path) -> list[Program]:
    """The programs of a file, as the module says; raises InputError for a line that names none."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}; give a file with a program in each line"
        ) from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            fields = shlex.split(line, comments=True)
        except ValueError as error:
            raise InputError(f"line {number} of {path}: {error}; close what is quoted") from error
        if not fields:
            continue
        if len(fields) <= _FIELDS:
            raise InputError(
                f"line {number} of {path} has {len(fields)} fields; give name, layout, other layout, folder "
                "and command"
            )
        name, layout, other, folder, *command = fields
        found.append(Program(name, layout, other, folder, tuple(command)))
    if not found:
        raise InputError(f"{path} names no program; give one in each line")
    return found


def _ranks_per_node(layout: str) -> int:
    shape = parse_layout(layout.partition(":")[0])
    return int(np.bincount(shape.node).max())


def _plain(program: Program, mpi: str) -> Change:
    return Change("", AS_RECORDED, "", Estimate.exact(1.0), program.layout, mpi, {})


def changes_of(advice: Advice, program: Program, mpi: str, other_mpis: Mapping[str, str]) -> list[Change]:
    """The changes that can be run alone without changing the program. `other_mpis`: names by what the advice
    says."""
    here = _plain(program, mpi)
    found = []
    for one in advice.ranked:
        kind, name = one.extra.get("kind"), one.method
        if one.speed_up is None:
            continue
        of_run = replace(here, kind=str(kind), text=name, name=name, speed_up=one.speed_up)
        if kind == LAYOUT:
            found.append(replace(of_run, layout=name.replace(" by ", ":")))
        elif kind == OTHER_MPI:
            found.append(replace(of_run, text=other_mpis[name], mpi=other_mpis[name]))
        elif kind == COLLECTIVE and (settings := settings_of(one.action)):
            found.append(replace(of_run, settings=settings))
    return found


def contradiction(check: Check, is_advised: bool) -> str | None:
    """What is wrong with the advice by this measurement, in a sentence."""
    how = f"{check.mpi}, {check.case}: measured {ratio_text(check.measured.value)}"
    interval = interval_text(check.measured, ratio_text)
    if is_advised and check.measured.high < 1:
        return f"advised, but slower: {how} ({interval})"
    if not is_advised and check.measured.low > CLEARLY and check.predicted.high < check.measured.low:
        return f"not advised, but faster than its interval: {how} ({interval})"
    return None


class _Bench:
    """The checks; profiles are measured when first needed."""

    def __init__(self, folder: Path, cluster: str, rate: str, mpis: Sequence[str], rounds: int):
        self.folder, self.cluster, self.rate = folder, cluster, rate
        self.mpis, self.rounds = mpis, rounds
        self._recorded = 0

    def checks_of(self, program: Program, mpi: str) -> Iterator[tuple[Check, str | None]]:
        """Each change that could be run, with what contradicts the advice, if anything does."""
        profile = self._profile(mpi)
        plain = _plain(program, mpi)
        try:
            recording = self._record(program, plain)
        except Unusable as error:
            say(f"{mpi}, {program.name}: {error}")
            return
        # From the first MPI to each of the others.
        others = {str(self._profile(one)): one for one in self.mpis[1:] if mpi == self.mpis[0]}
        options: list[Any] = ["--profile", profile, "--to-layout", program.other_layout]
        if _ranks_per_node(program.layout) > 1 and not program.layout.endswith(":node"):
            options += ["--to-layout", f"{program.layout}:node"]
        for other in others:
            options += ["--to-profile", other]
        try:
            advice = advice_from_json(earlybird("advise", "program", recording, *options))
            simulated = simulated_program_from_json(
                earlybird("predict", "program", recording, "--profile", profile)
            )
        except SystemExit as refused:
            say(f"{mpi}, {program.name}: {refused}")
            return
        advised = advice.ranked[0].method
        say(f"{mpi}, {program.name}: advised is {others.get(advised, advised)}")
        for change in changes_of(advice, program, mpi, others):
            try:
                measured = self._speed_up(program, plain, change)
            except Unusable as error:
                say(f"{mpi}, {program.name}, {change.text}: {error}")
                continue
            case = f"{program.name}, {change.text}"
            check = Check(change.kind, mpi, case, change.speed_up, measured, simulated.error, program.layout)
            yield check, contradiction(check, advised == change.name)

    def _speed_up(self, program: Program, plain: Change, changed: Change) -> Estimate:
        def seconds(how: Change) -> float:
            return load_recording(self._record(program, how)).run_s

        return measured_speed_up(self.rounds, lambda: seconds(plain), lambda: seconds(changed))

    def _record(self, program: Program, how: Change) -> Path:
        """Run the program and return its recording; raises Unusable if it failed or hung."""
        folder = self._next(program.name)
        layout, _, map_by = how.layout.partition(":")
        where = ["--name", self.cluster, "--mpi", how.mpi, "--layout", layout]
        where += ["--map-by", map_by] if map_by else []
        command = [word.replace("{mpi}", how.mpi) for word in program.command]
        launch = [
            "timeout", "--kill-after=10", LIMIT_S, EARLYBIRD, "record", "--events", "all", "-o", folder,
            "--mpi", how.mpi, "--",
            EARLYBIRD, "cluster", "mpiexec", *where, "--", *command,
        ]  # fmt: skip
        cwd = Path(program.folder.replace("{mpi}", how.mpi))
        if not cwd.is_dir():
            raise Unusable(f"there is no folder {cwd}")
        # Not to a pipe: ranks that outlive the command would keep it open.
        with open(self.folder / "output.txt", "w+") as output:
            status = subprocess.call(
                [str(word) for word in launch], cwd=cwd, env=os.environ | dict(how.settings),
                stdout=output, stderr=output,
            )  # fmt: skip
            output.seek(0)
            last = output.read().strip().splitlines()[-1:]
        if status in (124, 137):
            raise Unusable(f"did not end within {LIMIT_S:g} s")
        if status != 0:
            raise Unusable(f"ended with status {status}: {' '.join(last)}")
        return folder

    def _next(self, name: str) -> Path:
        """A name that no recording has."""
        while True:
            self._recorded += 1
            folder = self.folder / f"{name}-{self._recorded}"
            if not folder.exists():
                return folder

    def _profile(self, mpi: str) -> Path:
        collective = (
            "120s", "--op", OPERATIONS, "--ranks", RANKS, "--map-by", "node", "--sizes", SIZES,
            "--verify", "none",
        )  # fmt: skip
        suites: dict[str, Sequence[Any]] = {
            "pingpong": ("20s",), "contention": ("60s",), "completion": ("20s",), "collective": collective,
        }  # fmt: skip
        return fitted_profile(self.folder, lambda: self.cluster, mpi, self.rate, suites)
