"""What comparisons share: a virtual cluster, and `earlybird` as a user types it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from earlybird.data.errors import InputError
from earlybird.machine import flavours
from earlybird.present.render.notes import note
from earlybird.toolchain.build import is_built

EARLYBIRD = Path(sys.executable).parent / "earlybird"

# A small process starts the command: the memory of a process counts for those that it starts.
_WATCH = """
import resource, subprocess, sys, time
begin_s = time.perf_counter()
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - begin_s, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)
sys.exit(status)
"""


@dataclass(frozen=True)
class Usage:
    """What a command took: elapsed and processor time, and its largest memory."""

    elapsed_s: float
    processor_s: float
    memory_bytes: float


def watched(*arguments: Any) -> Usage:
    """Run `earlybird WORDS...` without its output; raises SystemExit with its error."""
    command = list(map(str, arguments))
    ran = subprocess.run(
        [sys.executable, "-c", _WATCH, str(EARLYBIRD), *command], capture_output=True, text=True
    )
    if ran.returncode:
        raise SystemExit(
            f"earlybird {' '.join(command)} ended with status {ran.returncode}: {ran.stderr.strip()}"
        )
    return Usage(*map(float, ran.stdout.split()))


def built_mpis() -> list[str]:
    return [flavour.name for flavour in flavours.present_flavours() if is_built(flavour)]


def chosen_flavours(names: Sequence[str] | None) -> list[flavours.Flavour]:
    """Those named by --mpi, else all built; raises InputError for one that is unknown or not installed, and
    if there is none."""
    chosen = names or built_mpis()
    if not chosen:
        raise InputError("no MPI is built here; run `earlybird build`")
    return [flavours.find_flavour(name) for name in chosen]


def earlybird(*arguments: Any, env: dict[str, str] | None = None) -> dict[str, Any]:
    """Run `earlybird WORDS... --json`, its warnings passed on, and return what it prints."""
    command = [str(EARLYBIRD), *map(str, arguments), "--json"]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | (env or {}))
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command[1:])} ended with status {result.returncode}")
    return json.loads(result.stdout)


@contextlib.contextmanager
def virtual_cluster(nodes: int, rate: str, *options: Any, suffix: str = "") -> Iterator[str]:
    """The name of a cluster that lives as long as the block; several at once have different suffixes."""
    name = f"bench-{os.getpid()}{suffix}"
    earlybird("cluster", "up", "--nodes", nodes, "--rate", rate, "--name", name, *options)
    try:
        yield name
    finally:
        subprocess.run([EARLYBIRD, "cluster", "down", "--name", name], stdout=subprocess.DEVNULL)


def say(text: str) -> None:
    """A heading of the output, or a remark on how far it is."""
    note(text)
