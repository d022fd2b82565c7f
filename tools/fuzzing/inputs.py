"""Runs the fuzz targets of formats: changed inputs, each in a forked process; failing inputs are kept."""

import concurrent.futures
import contextlib
import os
import resource
import shlex
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tools.fuzzing import mutations, trial
from tools.fuzzing.formats import FORMATS, Format, Refused, write_files

Command = tuple[str, ...]
_KEPT_OF_EACH_KIND = 3
_MAX_BYTES = 1 << 28  # of an input: what is read of a larger one may take that much memory
# Bytes that are no UTF-8, and what terminals, spreadsheets and shells obey.
NAMES = ("a\udcffb", "new\nline", "\x1b[31mred", "\u202eabc", "=1+1", "a b;c", "x" * 240, "'")


@dataclass
class Tally:
    """What became of the inputs of a target; `failures` has what is wrong, and how often."""

    name: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    kept: dict[str, Path] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.inputs} inputs, {self.accepted} accepted, {self.refused} refused, "
            f"{sum(self.failures.values())} failures"
        )


def total(tallies: Sequence[Tally]) -> Tally:
    """The sums over targets."""
    whole = Tally("all formats")
    for tally in tallies:
        whole.inputs += tally.inputs
        whole.accepted += tally.accepted
        whole.refused += tally.refused
        whole.failures += tally.failures
    return whole


def run_all(
    names: Sequence[str], seconds: float, found: Path, seed: int = 1, most: int | None = None
) -> Iterator[Tally]:
    """Run targets for some seconds each, as many at a time as there are cores."""
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        tasks = [pool.submit(run_target, name, seconds, found, seed, most) for name in names]
        for task in concurrent.futures.as_completed(tasks):
            yield task.result()


def run_target(name: str, seconds: float, found: Path, seed: int = 1, most: int | None = None) -> Tally:
    """Run a target for some seconds, or `most` inputs, in an environment without an MPI."""
    target, tally = FORMATS[name], Tally(name)
    shutil.rmtree(found / name, ignore_errors=True)
    with _no_mpi(), tempfile.TemporaryDirectory(prefix="earlybird-fuzz-") as scratch:
        try:
            files, others = dict(target.files()), dict(target.others())
        except Refused as refused:
            tally.failures[f"the originals cannot be made: {refused}"] += 1
            return tally
        commands = _accepted(target, files | others, Path(scratch), tally)
        end, number = time.monotonic() + seconds, 0
        while (number < most) if most is not None else (time.monotonic() < end):
            random = Random(f"{seed}:{name}:{number}")
            command = random.choice(commands)
            changed, note = files, ""
            if target.changes_arguments:
                command, note = _another_command(command, random)
            else:
                own = {name: content for name, content in files.items() if _reads(command, name)} or files
                changed, note = mutations.mutate(own, tuple(own), random)
                changed, command = _renamed(changed, command, random)
            if _num_bytes(changed) <= _MAX_BYTES:
                _try(changed, others, command, note, Path(scratch), found / name / f"{seed}-{number}", tally)
            number += 1
    return tally


def _num_bytes(files: mutations.Files) -> int:
    return sum(len(content) for content in files.values() if isinstance(content, bytes))


@contextlib.contextmanager
def _no_mpi() -> Iterator[None]:
    """An environment in which nothing can be launched, however an input asks for it."""
    before = dict(os.environ)
    os.environ |= {"EARLYBIRD_HOME": "/nonexistent", "PATH": "/nonexistent", "COLUMNS": "100"}
    for variable in [name for name in os.environ if name.startswith(("SLURM_", "EARLYBIRD_DEBUG"))]:
        del os.environ[variable]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _accepted(target: Format, files: dict[str, bytes], scratch: Path, tally: Tally) -> list[Command]:
    """The commands; each has read the original in this process, whose forks then need to import nothing."""
    commands = [tuple(shlex.split(command)) for command in target.commands]
    for command in commands:
        with _written(files, scratch) as folder:
            status, stderr = trial.run_here(folder, command)
        if status not in (0, 1 if command[0] == "compare" else 0):
            tally.failures[f"the original is refused by {shlex.join(command)}: {stderr.strip()[-200:]}"] += 1
    return commands


def _reads(command: Command, name: str) -> bool:
    """Whether a file is among the arguments, or in a folder that is."""
    return any(word == name or name.startswith((f"{word}/", f"{word}.")) for word in command)


def _renamed(files: mutations.Files, command: Command, random: Random) -> tuple[mutations.Files, Command]:
    """Now and then another name of a file that is an argument."""
    names = [name for name in files if name in command]
    if not names or random.random() > 0.03:
        return files, command
    _, dot, suffix = names[0].rpartition(".")
    new = random.choice(NAMES) + dot + suffix
    kept = {new if name == names[0] else name: content for name, content in files.items()}
    return kept, tuple(new if word == names[0] else word for word in command)


def _another_command(command: Command, random: Random) -> tuple[Command, str]:
    words = list(command)
    options = [k for k, word in enumerate(words) if k > 1 and not word.startswith("-")]
    k = random.choice(options)
    words[k] = mutations.mutate_argument(words[k], random)
    return tuple(words), f"argument {k}: {words[k][:60]!r} for {command[k]!r}"


@contextlib.contextmanager
def _written(files: mutations.Files, scratch: Path) -> Iterator[Path]:
    folder = scratch / "input"
    folder.mkdir()
    for name, content in files.items():
        if isinstance(content, mutations.Special):
            _make_special(folder / name, content)
        else:
            write_files(folder, {name: content})
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _make_special(path: Path, special: mutations.Special) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    match special:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path.name)
        case "endless":
            path.symlink_to("/dev/zero")
        case "dangling":
            path.symlink_to("nowhere")
        case "unreadable":
            path.touch(mode=0)


def _try(
    files: mutations.Files, others: dict[str, bytes], command: Command, note: str, scratch: Path, found: Path,
    tally: Tally,
) -> None:  # fmt: skip
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    with _written(others | files, scratch) as folder:
        result = trial.run(folder, command)
        wrong = trial.judge(result, command, resident * resource.getpagesize())
    tally.inputs += 1
    tally.accepted += not wrong and result.status in (0, 1)
    tally.refused += not wrong and result.status not in (0, 1)
    for kind in wrong:
        tally.failures[kind] += 1
        if tally.failures[kind] <= _KEPT_OF_EACH_KIND:
            tally.kept.setdefault(kind, found)
            _keep(found, others | files, command, note, wrong, result)


def _keep(
    found: Path, files: mutations.Files, command: Command, note: str, wrong: list[str], result: trial.Trial
) -> None:
    """Leave the input in a folder, with the command that shows the failure."""
    if found.exists():
        return
    with contextlib.suppress(FileExistsError):
        found.mkdir(parents=True)
        with _written(files, found):
            (found / "input").rename(found / "kept")
    (found / "kept").rename(found / "input")
    text = f"cd {found / 'input'} && earlybird {shlex.join(command)}"
    (found / "command.txt").write_text(
        "\n".join([f"# {note}", *(f"# {kind}" for kind in wrong), text, ""]), errors="backslashreplace"
    )
    (found / "stderr.txt").write_bytes(result.stderr[:100_000])
