"""Determines, before a command starts, whether libearlybird can interpose on its programs."""

import os
import re
from collections import namedtuple
from collections.abc import Mapping, Sequence
from pathlib import Path

from earlybird.data.errors import InputError
from earlybird.data.shell_commands import quoted
from earlybird.machine.commands import find_command
from earlybird.machine.compilers import Mpi, mpi_of_launcher
from earlybird.machine.flavours import Flavour
from earlybird.machine.programs import ABI, SONAMES, Program, read_program

# Names of launchers; shims/launcher.sh knows the options of each.
LAUNCHERS = (
    "mpiexec", "mpirun", "mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich", "mpiexec.openmpi",
    "mpirun.openmpi", "orterun", "prterun", "srun", "flux", "jsrun", "aprun", "palsrun", "ibrun",
)  # fmt: skip
_OF_SITES = ("srun", "flux", "jsrun", "aprun", "palsrun", "ibrun", "prterun")
# With what sites and distributions append to tell MPIs apart: a family or a version, and no file's extension.
_SUFFIXED = re.compile(
    r"(?:mpiexec|mpirun)[._-](?:[0-9]|mpich|openmpi|ompi|mvapich|impi|intel)[\w+-]*(?:\.[0-9][\w+-]*)*"
)
# Programs that start others, or that load an MPI while they run: their libraries are not those of the ranks.
_NOT_THE_PROGRAM = frozenset(
    [
        "env",
        "nice",
        "taskset",
        "numactl",
        "time",
        "timeout",
        "stdbuf",
        "setpriv",
        "chrt",
        "perf",
        "strace",
        "ltrace",
        "gdb",
        "xterm",
        "sh",
        "bash",
        "dash",
        "zsh",
        "ksh",
        "csh",
        "tcsh",
        "fish",
        "busybox",
        "ruby",
        "julia",
        "java",
        "node",
        "R",
        "Rscript",
    ]
)
_NOT_THE_PROGRAM_WITH_VERSION = ("python", "pypy", "perl", "valgrind", "octave", "lua")
# Options of launchers that take two values, such as mpiexec -env NAME VALUE, and those that name a file with
# programs that are not among the arguments.
_TAKE_TWO = frozenset(["env", "genv", "mca", "gmca", "omca", "pmca", "prtemca", "pmixmca"])
_NAME_PROGRAMS_ELSEWHERE = frozenset(["configfile", "app", "appfile", "multi-prog", "erf_input"])
# How much of a script is searched for a call of Python.
_SCRIPT_LIMIT_BYTES = 65536
_STARTS_RANKS = ("run", "submit", "bulksubmit")
_REMEDIES = {
    "mpich": "--mpi mpich, intel, or system (that of the mpicc on PATH)",
    "openmpi": "--mpi openmpi, or system (that of the mpicc on PATH)",
}


class CommandPrograms(
    namedtuple(
        "CommandPrograms",
        "sentences other_mpi is_rank is_whole_job loads_mpi is_standard_abi",
        defaults=[(), False, False, False, False, False],
    )
):
    """The known facts on the programs of a command.

    Attributes
    ----------
    sentences : one for each program that cannot be reached.
    other_mpi : the library must not be tried either: a program is of another MPI.
    is_rank : the command is itself an MPI program, started without a launcher.
    is_whole_job : every rank that the command starts is a program that the library reaches.
    loads_mpi : ranks load their MPI while they run.
    is_standard_abi : the programs are of the MPI standard's own ABI, for which there is a library.
    """


UNKNOWN = CommandPrograms()


def programs_of(
    arguments: Sequence[str], flavour: Flavour, environment: Mapping[str, str], has_abi_library: bool = False
) -> CommandPrograms:
    """Return the facts that the arguments of a command show about its programs; empty if nothing can be
    determined.

    `has_abi_library`: a libearlybird for programs of the MPI standard's own ABI exists, too.
    """
    at = launcher_at(arguments, flavour)
    if at is None:
        itself = _candidates(arguments[:1], environment)
        is_rank = any(one.program is not None and one.program.libmpi is not None for one in itself)
        is_standard_abi = has_abi_library and _are_of_standard_abi([itself])
        return CommandPrograms(
            *_said_of([itself], arguments[0], flavour, is_standard_abi),
            is_rank=is_rank,
            is_standard_abi=is_standard_abi,
        )
    launches = _launches(arguments[at:])
    seen = [_candidates(launch, environment) for launch in launches]
    sentence = _started_by_another_mpi(arguments[at], _using_mpi(seen), flavour, environment)
    if sentence is not None:
        return CommandPrograms((sentence,), other_mpi=True)
    is_standard_abi = has_abi_library and _are_of_standard_abi(seen)
    sentences, other_mpi = _said_of(seen, None, flavour, is_standard_abi)
    return CommandPrograms(
        sentences,
        other_mpi,
        is_whole_job=not sentences
        and at == 0
        and all(_is_mpi_program(launch, flavour, environment, is_standard_abi) for launch in launches),
        loads_mpi=any(_is_python(candidate.path) for candidates in seen for candidate in candidates),
        is_standard_abi=is_standard_abi,
    )


class _Candidate(namedtuple("_Candidate", "argument path program")):
    """An argument that may be a program: a path, or a command that is not the value of an option.

    `program` is None if it is not an ELF executable.
    """


def is_launcher(program: str, flavour: Flavour | None = None) -> bool:
    """Return whether a program, by its name or path, starts ranks; a launcher of `flavour` does.

    A script with a suffix in its name, such as mpirun-intel-job, may be a job of the user, which must not be
    run to print its version.
    """
    name = os.path.basename(program)
    if name in LAUNCHERS:
        return True
    if _SUFFIXED.fullmatch(name) is None:
        return False
    path = find_command(program)
    if path is None:
        return True
    return not _is_script(path) or (
        flavour is not None and os.path.realpath(path) == os.path.realpath(flavour.mpiexec)
    )


def _is_script(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read(4) != b"\x7fELF"
    except OSError:
        return True


def launcher_at(arguments: Sequence[str], flavour: Flavour | None = None) -> int | None:
    """Return the position of the launcher in the arguments of a command."""
    return next((k for k, argument in enumerate(arguments) if is_launcher(argument, flavour)), None)


def _launches(arguments: Sequence[str]) -> list[list[str]]:
    """Return the arguments of a launcher, for each of the programs that a lone colon separates."""
    rest = list(arguments[1:])
    if os.path.basename(arguments[0]) == "flux":
        subcommand = next((k for k, argument in enumerate(rest) if argument in _STARTS_RANKS), len(rest))
        rest = rest[subcommand + 1 :]
    launches: list[list[str]] = [[]]
    for argument in rest:
        if argument == ":":
            launches.append([])
        else:
            launches[-1].append(argument)
    return launches


def _candidates(arguments: Sequence[str], environment: Mapping[str, str]) -> list[_Candidate]:
    found = []
    before = ""
    for argument in arguments:
        path = _executable(argument, environment)
        if path is not None and (os.sep in argument or not before.startswith("-")):
            found.append(_Candidate(argument, path, read_program(path, environment)))
        before = argument
    return found


def _executable(argument: str, environment: Mapping[str, str]) -> Path | None:
    command = find_command(argument, environment["PATH"])
    return Path(command) if command is not None else None


def _using_mpi(launches: Sequence[Sequence[_Candidate]]) -> list[_Candidate]:
    return [one for candidates in launches for one in candidates if one.program and one.program.libmpi]


def _are_of_standard_abi(launches: Sequence[Sequence[_Candidate]]) -> bool:
    """Return whether all programs are of the MPI standard's ABI, because one launch preloads one library."""
    return {one.program.abi for one in _using_mpi(launches)} == {"standard"}


def _said_of(
    launches: Sequence[Sequence[_Candidate]], command: str | None, flavour: Flavour, serves_standard: bool
) -> tuple[tuple[str, ...], bool]:
    """Return the sentences on programs that cannot be reached, and whether the library must not be preloaded
    for them.

    `command`: a program started without a launcher.
    """
    using = _using_mpi(launches)
    for one in using:
        if not one.program.suits(flavour.family, serves_standard):
            return (_of_another_mpi(one.argument, one.program, flavour),), True
    sentences = [_unreached(candidates, command, flavour) for candidates in launches]
    if not using and not any(sentences):
        sentences = [_without_mpi(candidates, command) for candidates in launches]
    return tuple(dict.fromkeys(filter(None, sentences))), False


def _started_by_another_mpi(
    argument: str, using: Sequence[_Candidate], flavour: Flavour, environment: Mapping[str, str]
) -> str | None:
    """Return what is wrong if the launcher `argument` is of another MPI than a program that it starts."""
    programs = [candidate for candidate in using if candidate.program.abi in _REMEDIES]
    launcher = find_command(argument, environment["PATH"]) if programs else None
    mpi = _mpi_of(launcher, flavour) if launcher else None
    if mpi is None or mpi.abi is None:
        return None
    for candidate in programs:
        program = candidate.program
        if program.abi != mpi.abi:
            own = flavour.mpiexec if program.suits(flavour.family) else f"that of {program.built_against}"
            return (
                f"{argument} is the launcher of {mpi.label}, but {candidate.argument} is built against "
                f"{program.built_against} (it needs {program.libmpi}): each of its processes would be alone "
                f"in a job of its own, so libearlybird stays out of it; start it with {own}"
            )
    return None


def _mpi_of(launcher: str, flavour: Flavour) -> Mpi | None:
    """Return the MPI of `launcher`, which is started only if its MPI is in doubt; None if it does not answer
    or starts programs of any MPI."""
    name = os.path.basename(launcher)
    if os.path.realpath(launcher) == os.path.realpath(flavour.mpiexec):
        return Mpi(flavour.family, flavour.version, ABI.get(flavour.family))
    if name in _OF_SITES:
        return None
    try:
        return mpi_of_launcher(launcher, {})
    except InputError:
        return None


def _unreached(candidates: Sequence[_Candidate], command: str | None, flavour: Flavour) -> str | None:
    """Return why the program of a launch cannot be reached, if it is static."""
    if any(one.program and one.program.libmpi for one in candidates):
        return None
    for one in candidates:
        if one.program is not None and one.program.has_mpi:
            return _static(one.argument, "an MPI is linked into it statically", flavour)
        if command is not None and os.sep not in command:
            return None  # any command of the system
        if one.program is not None and one.program.static:
            return _static(one.argument, "it is linked statically", flavour)
    return None


def _without_mpi(candidates: Sequence[_Candidate], command: str | None) -> str | None:
    if command is not None or not candidates:
        return None
    if any(one.program is None or _is_other(one.path.name) for one in candidates):
        return None
    return (
        f"{candidates[0].argument} uses no MPI library; unless it loads one at run time, libearlybird "
        "has no effect on it"
    )


def _is_mpi_program(
    arguments: Sequence[str], flavour: Flavour, environment: Mapping[str, str], serves_standard: bool
) -> bool:
    """Return whether the library certainly reaches the program of a launch.

    It is not known for every launcher which options take a value. An argument after an option may therefore
    be its value, unless it can be started itself: then a program of this MPI is the launch's, anything else
    is in doubt.
    """
    own = may_be_own = 0  # how many arguments belong to the preceding option, certainly or possibly
    for argument in arguments:
        if own > 0:
            # mpiexec -env NAME VALUE of MPICH, --env NAME=VALUE of PALS
            own = 0 if "=" in argument else own - 1
        elif argument.startswith("-"):
            option, equals, _ = argument.lstrip("-").partition("=")
            if option in _NAME_PROGRAMS_ELSEWHERE:
                return False
            own = 2 if option in _TAKE_TWO and not equals else 0
            may_be_own = 0 if equals or own else 1
        elif (path := _executable(argument, environment)) is not None:
            program = read_program(path, environment)
            return (
                program is not None
                and not program.static
                and program.abi is not None
                and program.suits(flavour.family, serves_standard)
                and not _is_other(path.name)
            )
        elif may_be_own == 0:
            return False
        else:
            may_be_own = 0
    return False


def _is_other(name: str) -> bool:
    return name in _NOT_THE_PROGRAM or name.startswith(_NOT_THE_PROGRAM_WITH_VERSION)


def _is_python(path: Path) -> bool:
    """Return whether the file is a Python interpreter, or a script that is run by one or calls one."""
    if path.name.startswith(("python", "pypy")) and not path.suffix[1:].isalpha():
        return True
    try:
        with open(path, "rb") as stream:
            return stream.read(2) == b"#!" and b"python" in stream.read(_SCRIPT_LIMIT_BYTES)
    except OSError:
        return False


def _of_another_mpi(name: str, program: Program, flavour: Flavour) -> str:
    remedy = f"give {_REMEDIES[program.abi]}, or compile" if program.abi in _REMEDIES else "compile"
    return (
        f"{name} is built against {program.built_against} (it needs {program.libmpi}) and this is "
        f"{flavour.name} ({SONAMES[flavour.family]}), so libearlybird stays out of it; {remedy} it with "
        f"`earlybird exec --mpi {quoted(flavour.name)} -- mpicc`"
    )


def _static(name: str, why: str, flavour: Flavour) -> str:
    return (
        f"libearlybird cannot be put between {name} and {flavour.name} {flavour.version}: {why}; link it "
        f"with the MPI's shared library, as `earlybird exec --mpi {quoted(flavour.name)} -- mpicc` does"
    )
