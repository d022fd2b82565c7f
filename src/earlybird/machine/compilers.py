"""Determines to which MPI a compiler wrapper belongs, and which launcher starts its programs."""

import contextlib
import os
import re
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from earlybird.data.errors import InputError, cause_of
from earlybird.data.shell_commands import command_text
from earlybird.machine.commands import (
    find_command,
    is_executable,
    is_made_by_another,
    is_writable_by_all,
    path_folders,
)
from earlybird.machine.programs import ABI, abi_of_library, is_libmpi

# What starts ranks where an MPI has no mpiexec of its own, as Cray's.
SITE_LAUNCHERS = ("srun", "flux", "jsrun", "aprun", "palsrun")
_LAUNCHERS = ("mpiexec", "mpirun")
# Other names of launchers, for an MPI whose mpiexec has been taken by another MPI's.
_LAUNCHERS_OF = {
    "mpich": ("mpiexec.hydra", "mpiexec.mpich"),
    "intel": ("mpiexec.hydra",),
    "openmpi": ("orterun", "mpiexec.openmpi"),
}
_FAMILY_NAMES = {"mpich": "MPICH", "openmpi": "Open MPI", "intel": "Intel MPI"}
# Compilers of C, and what sites append to tell MPIs apart: mpicc.mpich, mpicc-openmpi-gcc-4.1, mpicc_openmpi.
_COMPILER = re.compile(r"(?:mpicc|mpiicc|mpiicx|mpigcc)((?:[._-].*)?)")
_OTHER_COMPILERS = ("mpic++", "mpicxx", "mpiCC", "mpif77", "mpif90", "mpifort")
# And Intel MPI's.
FORTRAN_COMPILERS = ("mpif77", "mpif90", "mpifort", "mpif08", "mpifc", "mpiifort", "mpiifx")
# Files of a loaded file system may take long.
ANSWER_LIMIT_S = 30.0
_HEADER_LIMIT_BYTES = 1 << 20


class _CannotStart(InputError):
    """The error for a program that the system does not start."""


class Mpi(namedtuple("Mpi", "family version abi")):
    """The properties of an MPI that a compiler or a launcher states; None for each part that it does not
    state.

    `family` is `mpich`, `openmpi` or `intel`; `abi` is `mpich` (Intel's too) or `openmpi`.
    """

    @property
    def label(self) -> str:
        """The family and the version for use in a sentence."""
        family = _FAMILY_NAMES.get(self.family or self.abi or "", "an unknown MPI")
        return f"{family} {self.version}" if self.version else family

    def goes_with(self, other: "Mpi") -> bool:
        """Return whether both may be parts of one MPI: no property that both state differs."""
        if not self.is_of_family(other):
            return False
        numbers = [re.findall(r"[0-9]+", re.split(r"[^0-9.]", mpi.version or "")[0]) for mpi in (self, other)]
        return all(mine == theirs for mine, theirs in zip(*numbers, strict=False))

    def is_of_family(self, other: "Mpi") -> bool:
        """Return whether no family and no ABI that both state differs."""
        pairs = ((self.family, other.family), (self.abi, other.abi))
        return all(mine == theirs for mine, theirs in pairs if mine and theirs)

    def can_start_with(self, launcher: "Mpi") -> bool:
        """Return whether a launcher starts programs of this MPI, though it may be of another release.

        Ranks of Open MPI need a launcher of the same release; hydra's protocol has not changed.
        """
        return self.is_of_family(launcher) and self.family not in (None, "openmpi") and launcher != UNKNOWN


UNKNOWN = Mpi(None, None, None)
Launcher = namedtuple("Launcher", "path mpi")


class Pair(namedtuple("Pair", "mpi launcher warning")):
    """The MPI of a compiler, its launcher, and what is doubtful about the pair; None for nothing."""


def is_compiler_name(name: str) -> bool:
    """Return whether a program of that name is an MPI's C compiler."""
    return _COMPILER.fullmatch(name) is not None


def is_wrapper_name(name: str) -> bool:
    """Return whether a program of that name is an MPI's compiler of any language."""
    return name in _OTHER_COMPILERS or name in FORTRAN_COMPILERS or is_compiler_name(name)


def names_like(mpicc: Path) -> dict[str, Path]:
    """Return the other compilers next to `mpicc` (name without its suffix -> path) if its name has a
    suffix."""
    match = _COMPILER.fullmatch(mpicc.name)
    suffix = match[1] if match else ""
    paths = {name: mpicc.with_name(f"{name}{suffix}") for name in _OTHER_COMPILERS if suffix}
    return {name: path for name, path in paths.items() if is_executable(str(path))}


def launcher_of(mpicc: Path, env: Mapping[str, str], limit_s: float = ANSWER_LIMIT_S) -> Pair:
    """Return the MPI of `mpicc` with its launcher: the first launcher that is not of another MPI.

    If the header states the release of the MPI, known launchers precede those of sites; a launcher of another
    release of its family is accepted, except for Open MPI. Each program may take `limit_s` to answer. Raises
    InputError if `mpicc` is no compiler of an MPI, or if there is no launcher.
    """
    flags = _flags_of(mpicc, env, limit_s)
    mpi = _mpi_of_flags(flags, mpicc)
    candidates = _candidates(mpicc, flags, mpi)
    if mpi == UNKNOWN and not flags:
        # An mpiexec on PATH would lend its MPI's name to any program.
        candidates = _next_to(mpicc, candidates)
    others, seen = [], set()
    of_site = of_other_release = None
    for path in candidates:
        real = os.path.realpath(path)
        if real in seen or not is_executable(str(path)):
            continue
        seen.add(real)
        try:
            launcher = Launcher(path, mpi_of_launcher(path, env, limit_s))
        except InputError as error:
            others.append(str(error))
            continue
        if launcher.mpi == UNKNOWN and mpi.version:
            of_site = of_site or launcher
        elif mpi.goes_with(launcher.mpi):
            return Pair(mpi, launcher, None)
        elif mpi.can_start_with(launcher.mpi):
            of_other_release = of_other_release or launcher
        else:
            others.append(f"{path} is {launcher.mpi.label}'s")
    if of_other_release is not None:
        return Pair(mpi, of_other_release, (
            f"{mpicc} is {mpi.label}'s, but its launcher {of_other_release.path} is "
            f"{of_other_release.mpi.label}'s; put the folder of its own mpiexec on PATH if ranks do not start"
        ))  # fmt: skip
    if of_site is not None:
        return Pair(mpi, of_site, None)
    if not others:
        raise InputError(f"there is no mpiexec next to {mpicc} or on PATH; give an mpicc with its mpiexec")
    if mpi == UNKNOWN:
        raise InputError(f"no launcher for {mpicc} works here ({', '.join(others)}); give an MPI that does")
    raise InputError(
        f"{mpicc} is {mpi.label}'s, but of the launchers next to it and on PATH {', '.join(others)}; install "
        f"the mpiexec of {mpi.label} or put its folder on PATH"
    )


def mpi_of_launcher(mpiexec: Path | str, env: Mapping[str, str], limit_s: float = ANSWER_LIMIT_S) -> Mpi:
    """Return the MPI of a launcher by its version text; UNKNOWN for a site's launcher, which starts programs
    of any MPI.

    Raises InputError for a launcher that does not answer, or fails and names no MPI.
    """
    text, status = _run([str(mpiexec), "--version"], env, limit_s)
    # In this order: hydra prints its configuration, which may contain the name of any other product.
    if "Intel(R) MPI" in text:
        return Mpi("intel", _first(r"Version\s+([0-9]+(?:\.[0-9]+)*)", text), "mpich")
    if "HYDRA build details" in text:
        return Mpi("mpich", _first(r"Version:\s+(\S+)", text), "mpich")
    if re.search(r"open.?mpi|open ?rte|prte", text, re.IGNORECASE) and status == 0:
        # PRRTE counts its own versions.
        version = None if "PRRTE" in text else _first(r"\b([0-9]+\.[0-9]+\.[0-9]+\w*)", text)
        return Mpi("openmpi", version, "openmpi")
    if status != 0 and os.path.basename(mpiexec) not in SITE_LAUNCHERS:
        raise InputError(f"{mpiexec} does not work (--version ends with status {status})")
    return UNKNOWN


def output_of(command: list[str], env: Mapping[str, str]) -> str:
    """Return what `command` prints; raise InputError if it does not answer."""
    return _run(command, env, ANSWER_LIMIT_S)[0]


def _run(command: list[str], env: Mapping[str, str], limit_s: float) -> tuple[str, int]:
    """Return what `command` prints, and its exit status; no process of it remains after `limit_s`."""
    import signal
    import subprocess

    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            env=dict(os.environ) | dict(env), stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise _CannotStart(
            f"{command[0]} does not start ({cause_of(error)}); give an MPI that works here"
        ) from error
    try:
        text, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise InputError(
            f"{' '.join(command)} does not answer in {limit_s:g} s; give an MPI that works here"
        ) from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
    return text, process.returncode


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match and match[1]


def _flags_of(mpicc: Path, env: Mapping[str, str], limit_s: float = ANSWER_LIMIT_S) -> list[str]:
    """Return the flags with which `mpicc` would call its compiler; empty if it does not print them."""
    import shlex

    # Every MPI of these families knows the option; Cray's compilers do not.
    try:
        arguments = shlex.split(_run([str(mpicc), "-show"], env, limit_s)[0], comments=False)
    except (_CannotStart, ValueError):
        return []
    return [flag for flag in arguments if flag.startswith(("-I", "-L", "-l")) and len(flag) > 2]


def _mpi_of_flags(flags: list[str], mpicc: Path) -> Mpi:
    """Return the MPI whose header `mpicc` compiles with, otherwise the MPI of the libraries that it links.

    It is read from files, because a compute node may lack the compiler that `mpicc` calls.
    """
    libraries = [Path(flag[2:]) for flag in flags if flag.startswith("-L")]
    headers = [Path(flag[2:]) for flag in flags if flag.startswith("-I")]
    for folder in (*headers, mpicc.parent.parent / "include"):
        mpi = _mpi_of_header(folder / "mpi.h")
        if mpi != UNKNOWN:
            return mpi
    names = [f"lib{flag[2:]}.so" for flag in flags if flag.startswith("-l")]
    linked = (folder / name for name in names if is_libmpi(name) for folder in libraries)
    abis = {abi_of_library(path.resolve().name) for path in linked if path.exists()}
    return Mpi(None, None, _only(abis) or _abi_of_folders(mpicc))


def _mpi_of_header(path: Path) -> Mpi:
    """Return the MPI of an mpi.h; UNKNOWN if the file does not exist or names none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            text = stream.read(_HEADER_LIMIT_BYTES)
    except OSError:
        return UNKNOWN
    defined = dict(re.findall(r'^\s*#\s*define\s+(\w*VERSION)\s+"?([\w.]+)', text, re.MULTILINE))
    if "I_MPI_VERSION" in defined:
        return Mpi("intel", defined["I_MPI_VERSION"], "mpich")
    if "OMPI_MAJOR_VERSION" in defined:
        numbers = (defined.get(f"OMPI_{part}_VERSION", "") for part in ("MAJOR", "MINOR", "RELEASE"))
        return Mpi("openmpi", ".".join(filter(None, numbers)), "openmpi")
    if "MPICH_VERSION" in defined:
        # What others have derived from MPICH need not have its hydra.
        is_derived = any(name.startswith(("MVAPICH", "CRAY", "PSP", "PARASTATION")) for name in defined)
        return Mpi("mpich", None if is_derived else defined["MPICH_VERSION"], "mpich")
    return UNKNOWN


def _abi_of_folders(mpicc: Path) -> str | None:
    """Return the ABI of the libraries next to `mpicc`, or of the module that Cray's compilers use."""
    cray = Path(os.environ.get("CRAY_MPICH_DIR", "/nowhere"))
    for folder in (mpicc.parent.parent / "lib", mpicc.parent.parent / "lib64", cray / "lib"):
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        abi = _only(abi_of_library(name) for name in names)
        if abi is not None:
            return abi
    return None


def _only(abis: Iterable[str | None]) -> str | None:
    """Return the ABI in `abis` if they contain exactly one."""
    known = set(abis) & set(ABI.values())
    return known.pop() if len(known) == 1 else None


def _candidates(mpicc: Path, flags: list[str], mpi: Mpi) -> Iterator[Path]:
    """Yield the paths at which the launcher of `mpicc` may be, the likeliest first."""
    hops = [path for path in _links(mpicc) if path.parent.name != "alternatives"]
    for path in hops:
        for suffix in _suffixes(path.name):
            yield from (path.parent / f"{name}{suffix}" for name in _LAUNCHERS)
    for prefix in dict.fromkeys(map(_prefix_of, flags)):
        if prefix is None:
            continue
        yield from (prefix / "bin" / name for name in _LAUNCHERS)
    suffixes = dict.fromkeys(suffix for path in hops for suffix in _suffixes(path.name) if suffix)
    special = [f"{name}{suffix}" for suffix in suffixes for name in _LAUNCHERS]
    for name in (*special, *_LAUNCHERS, *_LAUNCHERS_OF.get(mpi.family or "", ())):
        yield from (Path(folder) / name for folder in path_folders())
    yield from (Path(path) for path in map(find_command, SITE_LAUNCHERS) if path)


def _next_to(mpicc: Path, candidates: Iterable[Path]) -> list[Path]:
    """Return the launchers among `candidates` in the folder of a compiler that does not name its MPI; raise
    InputError if it can be none."""
    folders = {path.parent for path in _links(mpicc)}
    launchers = [path for path in candidates if path.parent in folders and is_executable(str(path))]
    if launchers and is_compiler_name(mpicc.name):
        return launchers
    more = "" if launchers else ", and there is no mpiexec next to it"
    raise InputError(
        f"{mpicc} is no MPI compiler: `{command_text([str(mpicc), '-show'])}` names no MPI{more}; give the "
        "path of an mpicc, such as /opt/mpi/bin/mpicc"
    )


def _prefix_of(flag: str) -> Path | None:
    """Return the folder of the MPI whose headers or libraries `flag` names, unless others may have put
    programs there."""
    folder = Path(flag[2:])
    if flag[1] not in "IL" or not folder.is_absolute() or folder.name not in ("include", "lib", "lib64"):
        return None
    prefix = Path(os.path.realpath(folder.parent))
    try:
        is_open = is_writable_by_all(prefix) or is_writable_by_all(prefix / "bin")
        return None if is_open or is_made_by_another(prefix) else folder.parent
    except OSError:
        return None


def _links(path: Path) -> list[Path]:
    """Return `path` and each link target on the way to the file."""
    links = [path]
    while links[-1].is_symlink() and len(links) < 40:
        links.append(links[-1].parent / os.readlink(links[-1]))
    return links


def _suffixes(name: str) -> list[str]:
    """Return the part of a compiler's name after its stem, and shorter parts: -openmpi-gcc, -openmpi,
    nothing."""
    match = _COMPILER.fullmatch(name)
    suffix = match[1] if match else ""
    return [suffix[: cut.start()] for cut in reversed(list(re.finditer(r"(?<=.)[._-]|$", suffix)))] + (
        [""] if suffix else []
    )
