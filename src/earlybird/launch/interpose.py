"""Have libearlybird preloaded in the ranks that a command starts, and in nothing else that it starts."""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.machine.flavours import Flavour
from earlybird.machine.home import home
from earlybird.machine.programs import SONAMES, Program, read_program
from earlybird.toolchain.build import LIBRARY, library_path

# What a launcher may be called; shims/launcher.sh knows how each is spoken to.
LAUNCHERS = (
    "mpiexec", "mpirun", "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich", "mpiexec.openmpi",
    "mpirun.openmpi", "orterun", "prterun", "srun",
)  # fmt: skip
# Variables of the environment inside: what the shims read, their folder, the flavour for commands inside.
PREFIX = "EARLYBIRD_EXEC_"
FLAVOUR = f"{PREFIX}MPI"
_SHIM = Path(__file__).parent / "shims" / "launcher.sh"
# Programs that start others, or that load an MPI while they run: what they need says nothing of the ranks.
_NOT_THE_PROGRAM = re.compile(
    r"(env|nice|taskset|numactl|time|timeout|stdbuf|setpriv|chrt|perf|strace|ltrace|gdb|valgrind\S*|xterm|"
    r"(ba|da|z|k|c|tc|fi)?sh|busybox|python\S*|perl\S*|ruby|julia|java|node|R|Rscript|octave\S*|lua\S*)$"
)


@dataclass(frozen=True)
class Remark:
    """One sentence on a program that libearlybird cannot reach; `alone`: it must not be tried either."""

    sentence: str
    alone: bool


def inside() -> bool:
    """Whether this process was started by an `exec` that interposes."""
    return f"{PREFIX}LIBRARY" in os.environ


def without(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` as it was outside of any `exec` that interposes."""
    result = {name: value for name, value in environment.items() if not name.startswith(PREFIX)}
    shims = environment.get(f"{PREFIX}SHIMS")
    result["PATH"] = os.pathsep.join(
        folder for folder in environment.get("PATH", "").split(os.pathsep) if folder != shims or not shims
    )
    preloaded = [
        entry
        for entry in re.split(r"[\s:]+", result.pop("LD_PRELOAD", ""))
        if entry and os.path.basename(entry) != LIBRARY
    ]
    return result | ({"LD_PRELOAD": ":".join(preloaded)} if preloaded else {})


def wrap(
    words: Sequence[str], flavour: Flavour, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The words and the environment by which the ranks of a command get libearlybird.

    `words` begins with the path of a program. A launcher is called through its shim, an MPI program that
    starts by itself has the library preloaded, anything else finds the shims first on PATH. Raises
    InputError where the library has a path that LD_PRELOAD cannot hold.
    """
    environment = without(environment)
    library = library_path(flavour)
    if re.search(r"[\s:,]", str(library)):
        raise InputError(
            f"{library} cannot be preloaded: its path has a blank, a colon or a comma; set EARLYBIRD_HOME to "
            "a folder without one and run `earlybird build` again, or give --no-interpose"
        )
    name = os.path.basename(words[0])
    shims = _shims({name} if name in LAUNCHERS else set(), environment["PATH"])
    inner = environment | {
        f"{PREFIX}LIBRARY": str(library),
        f"{PREFIX}FAMILY": flavour.family,
        f"{PREFIX}BIN": str(flavour.mpiexec.parent),
        f"{PREFIX}SHIMS": str(shims),
        FLAVOUR: flavour.name,
        "PATH": f"{shims}{os.pathsep}{environment['PATH']}",
    }
    if name in LAUNCHERS:
        return [str(shims / name), *words[1:]], inner | {f"{PREFIX}LAUNCHER": os.path.abspath(words[0])}
    program = read_program(Path(words[0]), environment)
    if program is not None and program.libmpi is not None:
        inner["LD_PRELOAD"] = ":".join([*filter(None, [environment.get("LD_PRELOAD")]), str(library)])
    return list(words), inner


def through_shim(
    words: Sequence[str], flavour: Flavour, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """As `wrap`, for words that call a launcher after others which enter a node, say."""
    position = next(k for k, word in enumerate(words) if os.path.basename(word) in LAUNCHERS)
    launcher = shutil.which(words[position], path=without(environment)["PATH"]) or words[position]
    launched, inner = wrap([launcher, *words[position + 1 :]], flavour, environment)
    return [*words[:position], *launched], inner


def remark(words: Sequence[str], flavour: Flavour, environment: Mapping[str, str]) -> Remark | None:
    """What to say of the program that `words` name; None where all is well or nothing can be seen."""
    at = next((k for k, word in enumerate(words) if os.path.basename(word) in LAUNCHERS), None)
    candidates = _candidates(words[at + 1 :] if at is not None else words[:1], environment["PATH"])
    programs = [(name, read_program(path, environment)) for name, path in candidates]
    using = [(name, program) for name, program in programs if program is not None and program.libmpi]
    for name, program in using:
        if not program.suits(flavour.family):
            return Remark(_of_another_mpi(name, program, flavour), alone=True)
    if using:
        return None
    for name, program in programs:
        if program is not None and program.has_mpi:
            return Remark(_static(name, "an MPI is linked into it statically", flavour), alone=False)
        if at is None and os.sep not in words[0]:
            return None  # any command of the system
        if program is not None and program.static:
            return Remark(_static(name, "it is linked statically", flavour), alone=False)
    others = [name for name, program in programs if program is None or _is_other(name)]
    if at is None or not programs or others:
        return None
    name = programs[0][0]
    sentence = (
        f"{name} needs no MPI library; unless it loads one itself, libearlybird has nothing to do in it"
    )
    return Remark(sentence, alone=False)


def _is_other(name: str) -> bool:
    return _NOT_THE_PROGRAM.match(os.path.basename(name)) is not None


def _of_another_mpi(name: str, program: Program, flavour: Flavour) -> str:
    others = {"MPICH or Intel MPI": "--mpi mpich or --mpi intel", "Open MPI": "--mpi openmpi"}
    built = program.built_against
    remedy = f"give {others[built]}, or compile" if built in others else "compile"
    return (
        f"{name} is built against {built} (it needs {program.libmpi}) and this is {flavour.name} "
        f"({SONAMES[flavour.family]}), so libearlybird stays out of it; {remedy} it with "
        f"`earlybird exec --mpi {flavour.name} -- mpicc`"
    )


def _static(name: str, why: str, flavour: Flavour) -> str:
    return (
        f"libearlybird cannot be put between {name} and {flavour.name} {flavour.version}: {why}; link it "
        f"with the MPI's shared library, as `earlybird exec --mpi {flavour.name} -- mpicc` does"
    )


def _candidates(words: Sequence[str], path: str) -> list[tuple[str, Path]]:
    """The words that may be programs to start: by path, or a command that is no option's value."""
    found = []
    before = ""
    for word in words:
        if os.sep in word:
            if os.path.isfile(word) and os.access(word, os.X_OK):
                found.append((word, Path(word)))
        elif not before.startswith("-") and (command := shutil.which(word, path=path)) is not None:
            found.append((word, Path(command)))
        before = word
    return found


def _shims(names: set[str], path: str) -> Path:
    """A folder with a shim for `names` and for every launcher on `path`: no other, because scripts look for
    srun to learn whether they are under Slurm."""
    names = names | {name for name in LAUNCHERS if shutil.which(name, path=path) is not None}
    text = _SHIM.read_bytes()
    key = hashlib.sha256(text + " ".join(sorted(names)).encode()).hexdigest()[:12]
    folder = home() / "launchers" / key
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".new-", dir=folder.parent))
    except OSError as error:
        raise InputError(
            f"cannot write in {folder.parent}: {error.strerror}; set EARLYBIRD_HOME to a folder you may "
            "write to, or give --no-interpose"
        ) from error
    for name in sorted(names):
        (made / name).write_bytes(text)
        (made / name).chmod(0o755)
    made.chmod(0o755)
    try:
        made.rename(folder)
    except OSError:  # another exec was quicker
        shutil.rmtree(made, ignore_errors=True)
    return folder
