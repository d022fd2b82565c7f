"""Determines to which MPI a compiler wrapper belongs, and which launcher starts its programs."""

import os
import re
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.machine.commands import find_command, is_executable, path_folders
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
_ANSWER_LIMIT_S = 30
_HEADER_LIMIT_BYTES = 1 << 20


class Mpi(namedtuple("Mpi", "family version abi")):
    """What a compiler or a launcher says of its MPI; None for each part that it does not say.

    `family` is `mpich`, `openmpi` or `intel`; `abi` is `mpich` (Intel's too) or `openmpi`.
    """

    @property
    def label(self) -> str:
        """The family and the version for use in a sentence."""
        family = _FAMILY_NAMES.get(self.family or self.abi or "", "an unknown MPI")
        return f"{family} {self.version}" if self.version else family

    def goes_with(self, other: "Mpi") -> bool:
        """Whether both may be parts of one MPI: nothing that both say differs."""
        if self.family and other.family and self.family != other.family:
            return False
        if self.abi and other.abi and self.abi != other.abi:
            return False
        numbers = [re.findall(r"\d+", re.split(r"[^\d.]", mpi.version or "")[0]) for mpi in (self, other)]
        return all(mine == theirs for mine, theirs in zip(*numbers, strict=False))


UNKNOWN = Mpi(None, None, None)
Launcher = namedtuple("Launcher", "path mpi")


def is_compiler_name(name: str) -> bool:
    """Whether a program of that name is an MPI's compiler of C."""
    return _COMPILER.fullmatch(name) is not None


def names_like(mpicc: Path) -> dict[str, Path]:
    """The other compilers next to `mpicc` (name without its suffix -> path) if its name has a suffix."""
    match = _COMPILER.fullmatch(mpicc.name)
    suffix = match[1] if match else ""
    paths = {name: mpicc.with_name(f"{name}{suffix}") for name in _OTHER_COMPILERS if suffix}
    return {name: path for name, path in paths.items() if is_executable(str(path))}


def mpi_of_compiler(mpicc: Path, env: Mapping[str, str]) -> Mpi:
    """The MPI whose header `mpicc` compiles with, else of the libraries that it links.

    Read from files, because a compute node may lack the compiler that `mpicc` calls.
    """
    return _mpi_of_flags(_flags_of(mpicc, env), mpicc)


def launcher_of(mpicc: Path, env: Mapping[str, str]) -> tuple[Mpi, Launcher]:
    """The MPI of `mpicc` and the first launcher that is not another MPI's; InputError if there is none."""
    flags = _flags_of(mpicc, env)
    mpi = _mpi_of_flags(flags, mpicc)
    others, seen = [], set()
    for path in _candidates(mpicc, flags, mpi):
        real = os.path.realpath(path)
        if real in seen or not is_executable(str(path)):
            continue
        seen.add(real)
        try:
            launcher = Launcher(path, mpi_of_launcher(path, env))
        except InputError as error:
            others.append(str(error))
            continue
        if mpi.goes_with(launcher.mpi):
            return mpi, launcher
        others.append(f"{path} is {launcher.mpi.label}'s")
    if not others:
        raise InputError(f"there is no mpiexec next to {mpicc} or on PATH; give an mpicc with its mpiexec")
    if mpi == UNKNOWN:
        raise InputError(f"no launcher for {mpicc} works here ({', '.join(others)}); give an MPI that does")
    raise InputError(
        f"{mpicc} is {mpi.label}'s, but of the launchers next to it and on PATH {', '.join(others)}; install "
        f"the mpiexec of {mpi.label} or put its folder on PATH"
    )


def mpi_of_launcher(mpiexec: Path | str, env: Mapping[str, str]) -> Mpi:
    """The MPI of a launcher by its version text; UNKNOWN for a site's, which starts programs of any MPI."""
    text = output_of([str(mpiexec), "--version"], env)
    # In this order: hydra prints its configuration, which may contain the name of any other product.
    if "Intel(R) MPI" in text:
        return Mpi("intel", _first(r"Version\s+(\d+(?:\.\d+)*)", text), "mpich")
    if "HYDRA build details" in text:
        return Mpi("mpich", _first(r"Version:\s+(\S+)", text), "mpich")
    if re.search(r"open.?mpi|open ?rte|prte", text, re.IGNORECASE):
        # PRRTE counts its own versions.
        version = None if "PRRTE" in text else _first(r"\b(\d+\.\d+\.\d+\w*)", text)
        return Mpi("openmpi", version, "openmpi")
    return UNKNOWN


def output_of(command: list[str], env: Mapping[str, str]) -> str:
    """What `command` prints; InputError if it does not answer."""
    import subprocess

    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_ANSWER_LIMIT_S,
            env=dict(os.environ) | dict(env), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"{' '.join(command)} does not answer ({error}); give an MPI that works here"
        ) from error
    return result.stdout + result.stderr


def _first(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match and match[1]


def _flags_of(mpicc: Path, env: Mapping[str, str]) -> list[str]:
    """The flags with which `mpicc` would call its compiler; empty if it does not say."""
    import shlex

    try:
        # Every MPI of these families knows the option; Cray's compilers do not.
        words = shlex.split(output_of([str(mpicc), "-show"], env), comments=False)
    except (InputError, ValueError):
        return []
    return [word for word in words if word.startswith(("-I", "-L", "-l")) and len(word) > 2]


def _mpi_of_flags(flags: list[str], mpicc: Path) -> Mpi:
    libraries = [Path(flag[2:]) for flag in flags if flag.startswith("-L")]
    headers = [Path(flag[2:]) for flag in flags if flag.startswith("-I")]
    for folder in (*headers, mpicc.parents[1] / "include"):
        mpi = _mpi_of_header(folder / "mpi.h")
        if mpi != UNKNOWN:
            return mpi
    names = [f"lib{flag[2:]}.so" for flag in flags if flag.startswith("-l")]
    linked = (folder / name for name in names if is_libmpi(name) for folder in libraries)
    abis = {abi_of_library(path.resolve().name) for path in linked if path.exists()}
    return Mpi(None, None, _only(abis) or _abi_of_folders(mpicc))


def _mpi_of_header(path: Path) -> Mpi:
    """The MPI of an mpi.h; UNKNOWN if the file is not there or names none."""
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
    """The ABI of the libraries next to `mpicc`, or of the module that Cray's compilers use."""
    cray = Path(os.environ.get("CRAY_MPICH_DIR", "/nowhere"))
    for folder in (mpicc.parents[1] / "lib", mpicc.parents[1] / "lib64", cray / "lib"):
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        abi = _only(abi_of_library(name) for name in names)
        if abi is not None:
            return abi
    return None


def _only(abis: Iterable[str | None]) -> str | None:
    """The ABI of `abis` if it is the only one."""
    known = set(abis) & set(ABI.values())
    return known.pop() if len(known) == 1 else None


def _candidates(mpicc: Path, flags: list[str], mpi: Mpi) -> Iterator[Path]:
    """Paths at which the launcher of `mpicc` may be, the likeliest first."""
    hops = [path for path in _links(mpicc) if path.parent.name != "alternatives"]
    for path in hops:
        for suffix in _suffixes(path.name):
            yield from (path.parent / f"{name}{suffix}" for name in _LAUNCHERS)
    prefixes = dict.fromkeys(parent for flag in flags if flag[1] in "IL" for parent in Path(flag[2:]).parents)
    for prefix in prefixes:
        yield from (prefix / "bin" / name for name in _LAUNCHERS)
    suffixes = dict.fromkeys(suffix for path in hops for suffix in _suffixes(path.name) if suffix)
    special = [f"{name}{suffix}" for suffix in suffixes for name in _LAUNCHERS]
    for name in (*special, *_LAUNCHERS, *_LAUNCHERS_OF.get(mpi.family or "", ())):
        yield from (Path(folder) / name for folder in path_folders())
    yield from (Path(found) for found in map(find_command, SITE_LAUNCHERS) if found)


def _links(path: Path) -> list[Path]:
    """`path` and what it links to, link by link."""
    links = [path]
    while links[-1].is_symlink() and len(links) < 40:
        links.append(links[-1].parent / os.readlink(links[-1]))
    return links


def _suffixes(name: str) -> list[str]:
    """What the name of a compiler has after its stem, and shorter: -openmpi-gcc, -openmpi, nothing."""
    match = _COMPILER.fullmatch(name)
    suffix = match[1] if match else ""
    return [suffix[: cut.start()] for cut in reversed(list(re.finditer(r"(?<=.)[._-]|$", suffix)))] + (
        [""] if suffix else []
    )
