"""Starts a command in the environment of an MPI, its ranks with libearlybird or the recorder, for `exec` and
`record`.

Every job pays for the start of `exec`: this module imports as little as possible.
"""

import os
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

from earlybird.data.errors import InputError, cause_of
from earlybird.data.shell_commands import path_argument, quoted
from earlybird.launch import command_programs, interpose
from earlybird.launch.choice import built_flavours, choose_flavour
from earlybird.machine.commands import find_command, is_executable
from earlybird.machine.compilers import FORTRAN_COMPILERS, is_wrapper_name
from earlybird.machine.flavours import WHEELS, Flavour, wheel_folder
from earlybird.toolchain.build import ABI_LIBRARY, library_path

# `exec`'s arguments: the command, the name of an MPI or None, whether to run without libearlybird, the path
# of a profile or None, whether to preload the recorder, further libraries to preload, the number of lanes or
# None, whether to forget first what libearlybird has kept; the command may then be empty.
Request = namedtuple(
    "Request",
    "command mpi no_interpose profile records others lanes forgets",
    defaults=[None, False, None, False, (), None, False],
)
Note = Callable[[str], None]  # prints a remark


def start(request: Request, note: Note) -> object:
    """Replace this process by the command of `request`; raise InputError if that fails."""
    if not request.command:  # `exec --forget`
        raise SystemExit(forget(choose_flavour(request.mpi, note), is_alone=True))
    # Before anything is forgotten: a command that cannot be run forgets nothing.
    program, command, environment = prepare(request, note)
    forget_before(request)
    try:
        os.execve(program, command, environment)
    except OSError as error:
        raise cannot_run(program, error) from error


def forget_before(request: Request) -> None:
    """Forget what libearlybird has kept, if `request` says so; raise SystemExit if that fails."""
    if request.forgets and (status := forget(choose_flavour(request.mpi), is_alone=False)) != 0:
        raise SystemExit(status)


def forget(flavour: Flavour, *, is_alone: bool) -> int:
    """Remove what libearlybird has kept for this MPI on this machine; return the exit status.

    It prints what was removed, to stderr before a command that has an output of its own.
    """
    program = library_path(flavour).parents[1] / "libexec" / "earlybird" / "forget_cache"
    if not program.exists():
        raise InputError(
            f"libearlybird is not built for {flavour.name}; run `earlybird build --mpi "
            f"{quoted(flavour.name)}`"
        )
    environment = interpose.without(flavour.environment())
    actions = [] if is_alone else [(os.POSIX_SPAWN_DUP2, 2, 1)]
    child = os.posix_spawn(program, [str(program)], environment, file_actions=actions)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def cannot_run(program: str, error: OSError) -> InputError:
    """Return the error for a program that the system does not start."""
    return InputError(
        f"{program} cannot be run ({cause_of(error)}); a script needs a first line such as #!/bin/sh"
    )


def prepare(request: Request, note: Note) -> tuple[str, list[str], dict[str, str]]:
    """Return the program, the arguments and the environment of the command of `request`."""
    command = request.command
    flavour = choose_flavour(request.mpi, note)
    # A surrounding `record` goes on recording, where its recorder is built for this MPI.
    inherits = interpose.inside_record() and not request.records and library_path(flavour).exists()
    others = interpose.preloaded_others() if inherits else request.others
    environment = interpose.without(flavour.environment())
    program = find_command(command[0], environment["PATH"])
    if program is None:
        raise InputError(_not_found(command[0], flavour))
    for option, value in (("--profile", request.profile), ("--lanes", request.lanes)):
        if value is not None and request.no_interpose:
            raise InputError(f"{option} is for libearlybird, which --no-interpose disables; give one of them")
    # Not even loaded then: it could not be inert in a program of the other kind of MPI.
    is_off = environment.get("EARLYBIRD_OFF", "") not in ("", "0")
    if request.profile is not None and not is_off:
        environment["EARLYBIRD_COSTS"] = _costs(request.profile, flavour, note)
    if request.lanes is not None:
        environment |= _lane_variables(request.lanes, flavour, environment)
    if is_off and request.records:
        raise InputError("EARLYBIRD_OFF is set, which keeps the recorder out of the ranks; unset it")
    inherits = inherits and not is_off
    if request.records or inherits or not (request.no_interpose or is_off):
        preloading = request._replace(records=request.records or inherits, others=others)
        program, command, environment = _interposed(
            program, command, flavour, environment, preloading, note, may_refuse=request.records
        )
    else:
        try:
            flavour.tools(environment["PATH"])
        except InputError as error:
            note(f"warning: the commands mpicc and mpiexec may be another MPI's: {error}")
    return program, command, environment


def _not_found(name: str, flavour: Flavour) -> str:
    if os.path.isfile(name):
        here = quoted(f"./{name}")
        remedy = _how_to_run(name) if os.sep in name else f"give its path, {here}"
        return f"the file {name} is not a command that can be run; {remedy}"
    if os.sep in name and os.path.exists(name):
        kind = "a folder" if os.path.isdir(name) else "not a regular file"
        return f"the command {name} is {kind}; give the path of a program"
    if is_wrapper_name(name):
        return f"{flavour.name} has no compiler {name}; {_who_has(name)}"
    return f"the command {name!r} is neither on PATH nor a file; check its name"


def _how_to_run(path: str) -> str:
    """Return the remedy for a file that the system does not start: chmod only for a program of this user."""
    status = os.stat(path)
    if status.st_mode & 0o111:
        return "copy it to a file system and under an owner for which you may run it"
    try:
        with open(path, "rb") as stream:
            begin = stream.read(4)
    except OSError:
        begin = b""
    if status.st_uid != os.geteuid() or not begin.startswith((b"#!", b"\x7fELF")):
        return "give a program, or a script that begins with a line such as #!/bin/sh and that you may run"
    return f"run chmod +x {path_argument(path)}"


def _who_has(name: str) -> str:
    """Return the remedy for a compiler that an MPI lacks."""
    installed = [mpi for mpi in WHEELS if is_executable(str(wheel_folder(mpi) / "bin" / name))]
    if installed:
        return f"{', '.join(installed)} has it: give --mpi {installed[0]}"
    if name in FORTRAN_COMPILERS:
        return (
            "the wheels of MPICH and Open MPI have no Fortran; use mpif90 of Intel MPI (`earlybird build "
            "--mpi intel`, then --mpi intel), or give the path of an mpicc with an mpif90 next to it"
        )
    return "give an MPI that has it, such as the path of an mpicc with that compiler next to it"


def _interposed(
    program: str,
    command: list[str],
    flavour: Flavour,
    environment: dict[str, str],
    request: Request,
    note: Note,
    *,
    may_refuse: bool,
) -> tuple[str, list[str], dict[str, str]]:
    """Return the command to start so that ranks get the library; print a remark if they do not, or if it has
    no effect.

    `may_refuse`: raise InputError if the command cannot be recorded, as for `record` itself.
    """
    library = library_path(flavour)
    if not library.exists() and may_refuse:
        raise InputError(
            f"the recorder is not built for {flavour.name}; run `earlybird build --mpi "
            f"{quoted(flavour.name)}`"
        )
    if not library.exists():
        note(
            f"earlybird: libearlybird is not built for {flavour.name} and is not preloaded; run "
            f"`earlybird build --mpi {quoted(flavour.name)}`"
        )
        return program, command, environment
    programs = command_programs.programs_of(
        command, flavour, environment, library.with_name(ABI_LIBRARY).exists()
    )
    if programs.other_mpi and request.mpi is None and not interpose.inside():
        other = _suitable_flavour(command)
        if other is not None:
            note(f"earlybird: the program is not built against {flavour.name}; --mpi {other.name} is used")
            return prepare(request._replace(mpi=other.name), note)
    # What keeps libearlybird out of a program keeps the recorder out, too.
    sentences = [
        sentence.replace("libearlybird", "the recorder") if request.records else sentence
        for sentence in programs.sentences
    ]
    if may_refuse and programs.other_mpi:
        raise InputError("; ".join(sentences))
    for sentence in sentences:
        note(f"earlybird: {sentence}")
    if programs.other_mpi:
        return program, command, environment
    (program, *rest), environment = interpose.wrap(
        [program, *command[1:]],
        flavour,
        environment,
        programs,
        library,
        records=request.records,
        interposes=not request.no_interpose,
        others=request.others,
    )
    return program, [command[0], *rest], environment


def _suitable_flavour(command: list[str]) -> Flavour | None:
    """Return the first MPI that is built and that the programs of `command` are built against."""
    for flavour in built_flavours():
        has_abi_library = library_path(flavour).with_name(ABI_LIBRARY).exists()
        environment = interpose.without(flavour.environment())
        if not command_programs.programs_of(command, flavour, environment, has_abi_library).other_mpi:
            return flavour
    return None


def _lane_variables(lanes: int, flavour: Flavour, environment: dict[str, str]) -> dict[str, str]:
    """Return the variables for so many lanes, and the contexts of the MPI that they need, unless the user has
    requested contexts."""
    from earlybird.data.contexts import lane_variables

    variables = lane_variables(flavour.family, lanes)
    return {
        name: value
        for name, value in variables.items()
        if name.startswith("EARLYBIRD_") or not environment.get(name)
    }


def _costs(path: Path, flavour: Flavour, note: Note) -> str:
    """Return the value of EARLYBIRD_COSTS; print which message costs are used."""
    from earlybird.data.message_costs import costs_of_profile
    from earlybird.data.profile import load_profile

    fitted = load_profile(path)
    fitted_flavour = fitted.context.get("flavour", flavour.name)
    if fitted_flavour != flavour.name:
        note(
            f"warning: the profile {path} was measured with {fitted_flavour}, but this is {flavour.name}; "
            "its costs are used anyway"
        )
    costs = costs_of_profile(fitted)
    if not costs.networks:
        raise InputError(
            f"the profile {path} has no latency and bandwidth of messages; give one of pingpong "
            "and contention, or omit --profile"
        )
    note(f"earlybird: message costs of {path}: {costs.describe()}")
    return costs.to_text()
