"""Preload libearlybird, the recorder or both in the ranks that a command starts, and in no other process."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.launch.command_programs import (
    LAUNCHERS,
    UNKNOWN,
    CommandPrograms,
    is_launcher,
    launcher_at,
    programs_of,
)
from earlybird.machine import home
from earlybird.machine.commands import find_command
from earlybird.machine.flavours import Flavour
from earlybird.machine.programs import SONAMES
from earlybird.toolchain.build import ABI_LIBRARY, ABI_RECORDER, LIBRARY, RECORDER, library_path

# Variables of the environment inside: what the shims read, their folder, the flavour for commands inside.
PREFIX = "EARLYBIRD_EXEC_"
FLAVOUR = f"{PREFIX}MPI"
_LIBRARIES, _RECORDERS = (LIBRARY, ABI_LIBRARY), (RECORDER, ABI_RECORDER)
_OURS = (*_LIBRARIES, *_RECORDERS)
# What separates entries of LD_PRELOAD, and of srun's --export, and what the dynamic linker replaces in them.
_NOT_IN_ENTRIES = re.compile(r"[ \t\n:,]|\$\{?(ORIGIN|LIB|PLATFORM)\b")
_WHY_NOT = "its path has a blank, a colon, a comma, or a $LIB, $ORIGIN or $PLATFORM"
_SHIMS = Path(__file__).parent / "shims"
# In the folder of the shims: how to call each launcher.
_SPOKEN = ".launchers"


def inside() -> bool:
    """Return whether this process was started by an `exec` that interposes."""
    return f"{PREFIX}LIBRARY" in os.environ


def inside_record() -> bool:
    """Return whether this process was started by `record`."""
    return any(os.path.basename(entry) in _RECORDERS for entry in _preloaded(os.environ))


def _preloaded(environment: Mapping[str, str]) -> list[str]:
    """Return what the surrounding `exec` or `record` preloads."""
    return list(filter(None, environment.get(f"{PREFIX}LIBRARY", "").split(":")))


def preloaded_others() -> list[Path]:
    """Return what the surrounding `exec` or `record` preloads besides our libraries."""
    return [Path(entry) for entry in _preloaded(os.environ) if os.path.basename(entry) not in _OURS]


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` as it was outside of any `exec` that interposes."""
    result = {name: value for name, value in environment.items() if not name.startswith(PREFIX)}
    shims = environment.get(f"{PREFIX}SHIMS")
    result["PATH"] = os.pathsep.join(
        folder for folder in environment.get("PATH", "").split(os.pathsep) if folder != shims or not shims
    )
    preloaded = [
        entry
        for entry in result.pop("LD_PRELOAD", "").replace(":", " ").split()
        if os.path.basename(entry) not in _OURS and entry != environment.get(f"{PREFIX}LIBMPI")
    ]
    return result | ({"LD_PRELOAD": ":".join(preloaded)} if preloaded else {})


def wrap(
    arguments: Sequence[str],
    flavour: Flavour,
    environment: Mapping[str, str],
    found: CommandPrograms = UNKNOWN,
    library: Path | None = None,
    records: bool = False,
    interposes: bool = True,
    others: Sequence[Path] = (),
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the environment that preload libearlybird in the ranks of a command.

    `arguments` begins with the path of a program. A launcher is called through its shim; an MPI program
    without a launcher gets the library preloaded; for any other program the shims come first on PATH.
    `found`: what is known about the command's programs; `library`: the path of libearlybird, if already
    known. With `records` the recorder is preloaded before libearlybird, or alone unless `interposes`;
    `others` follow. Raises InputError if LD_PRELOAD cannot contain their paths.
    """
    environment = without(environment)
    library = library or library_path(flavour)
    recorder = library.with_name(ABI_RECORDER if found.is_standard_abi else RECORDER)
    if found.is_standard_abi:
        library = library.with_name(ABI_LIBRARY)
    # The recorder calls the next function of a name: libearlybird's, where that comes next.
    preloaded = ":".join(map(str, [*[recorder] * records, *[library] * interposes, *others]))
    for other in others:
        if not _can_be_preloaded(other):
            raise InputError(f"{other} cannot be preloaded: {_WHY_NOT}; give another path")
    if not _can_be_preloaded(library):
        raise InputError(
            f"{library} cannot be preloaded: {_WHY_NOT}; set EARLYBIRD_HOME to a folder without one and run "
            "`earlybird build` again, or give --no-interpose"
        )
    name = os.path.basename(arguments[0])
    is_called = is_launcher(arguments[0], flavour)
    shims = _shims([name] * is_called, flavour.mpiexec, environment["PATH"])
    # A site's launcher, in another folder than the MPI, is queried for its family.
    own_folder = flavour.tools(environment["PATH"])
    if own_folder is None and flavour.mpiexec.parent == flavour.mpicc.parent:
        own_folder = flavour.mpiexec.parent
    inner = environment | {
        f"{PREFIX}LIBRARY": preloaded,
        f"{PREFIX}FAMILY": flavour.family,
        f"{PREFIX}BIN": str(own_folder or ""),
        f"{PREFIX}SHIMS": str(shims),
        FLAVOUR: flavour.name,
        "PATH": f"{shims}{os.pathsep}{environment['PATH']}",
    }
    libmpi = _late_libmpi(flavour)
    if libmpi is not None:
        inner[f"{PREFIX}LIBMPI"] = str(libmpi)
        if found.loads_mpi:
            inner[f"{PREFIX}LATE"] = "yes"
    if found.is_whole_job and interposes:
        inner.setdefault("EARLYBIRD_WHOLE_JOB", "1")  # what a person set stays
    if is_called:
        return [str(shims / name), *arguments[1:]], inner | {
            f"{PREFIX}LAUNCHER": os.path.abspath(arguments[0])
        }
    if found.is_rank:
        inner["LD_PRELOAD"] = ":".join([*filter(None, [environment.get("LD_PRELOAD")]), preloaded])
    return list(arguments), inner


def _can_be_preloaded(path: Path) -> bool:
    return _NOT_IN_ENTRIES.search(str(path)) is None


def _late_libmpi(flavour: Flavour) -> Path | None:
    """Return the MPI library that programs which load MPI at run time must preload: Open MPI's handles are
    data, looked up when libearlybird is loaded. None if it is not needed or does not exist."""
    if flavour.family != "openmpi":
        return None
    root = flavour.mpicc.parent.parent
    for folder in (root / "lib", root / "lib64", *root.glob("lib/*-linux-gnu")):
        path = folder / SONAMES["openmpi"]
        if path.exists() and _can_be_preloaded(path):
            return path
    return None


def through_shim(
    arguments: Sequence[str],
    flavour: Flavour,
    environment: Mapping[str, str],
    interposes: bool | None = None,
) -> tuple[list[str], dict[str, str]]:
    """Return what `wrap` returns, for a command whose launcher is preceded by other arguments, such as those
    that enter a node; preload what the surrounding `exec` or `record` does. `interposes`: whether
    libearlybird is among it; None: as there."""
    position = launcher_at(arguments, flavour)
    outside = without(environment)
    launcher = find_command(arguments[position], outside["PATH"]) or arguments[position]
    library = library_path(flavour)
    seen = programs_of(arguments[position:], flavour, outside, library.with_name(ABI_LIBRARY).exists())
    found = UNKNOWN._replace(is_standard_abi=seen.is_standard_abi)
    names = {entry: os.path.basename(entry) for entry in _preloaded(environment)}
    if interposes is None:
        interposes = not names or any(name in _LIBRARIES for name in names.values())
    launched, inner = wrap(
        [launcher, *arguments[position + 1 :]], flavour, environment, found, library,
        records=any(name in _RECORDERS for name in names.values()),
        interposes=interposes,
        others=[Path(entry) for entry, name in names.items() if name not in _OURS],
    )  # fmt: skip
    return [*arguments[:position], *launched], inner


def _shims(called: Sequence[str], mpiexec: Path, path: str) -> Path:
    """Return a folder with a shim for the launchers `called`, and for every launcher on `path`, including the
    MPI's `mpiexec`; it has no other shim, because scripts look for srun to determine whether they run under
    Slurm."""
    own = [mpiexec.name] if is_launcher(mpiexec.name) else []
    names = {name for name in (*LAUNCHERS, *own) if find_command(name, path) is not None} | set(called)
    spoken = {file.name: file.read_bytes() for file in sorted((_SHIMS / "launchers").iterdir())}
    text = (_SHIMS / "launcher.sh").read_bytes()
    files = {f"{_SPOKEN}/{name}": content for name, content in spoken.items()}
    files |= dict.fromkeys(sorted(names), text)
    return home.scripts_folder(home.LAUNCHERS, files, lambda path: path in names)
