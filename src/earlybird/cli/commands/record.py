"""`earlybird record`: runs a program and records who sends how much to whom, and in which calls."""

import contextlib
import signal
import subprocess
import sys
import time
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird import __version__
from earlybird.cli.commands.exec_start import Request, cannot_run, prepare
from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.cli.options.shared import MpiOption
from earlybird.data.errors import InputError, WorkError, cause_of
from earlybird.data.recording import (
    Recording,
    discard_if_empty,
    load_recording,
    recording_into,
    save_functions,
)
from earlybird.data.shell_commands import path_argument
from earlybird.data.units import parse_bytes, shortened, size_argument, whole_number
from earlybird.launch.process import Seen, orphans_adopted
from earlybird.machine.hardware import describe
from earlybird.machine.openmp import openmp_runtime
from earlybird.machine.symbols import function_names, source_lines
from earlybird.present.render.data import Format
from earlybird.present.render.notes import note
from earlybird.present.render.streams import discard
from earlybird.present.subjects.recording.terminal import print_recording

MAX_EVENTS = 10**8
EVENTS_SIZE = "1GiB"
_MIN_EVENTS_BYTES = 1 << 20
_PASSED_ON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
# si_code of signals that a terminal sends, to the command as well.
_OF_KERNEL = 0x80


def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND", help="Command to run, after the options of record; -- may precede it."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder to create.", metavar="REC")
    ] = None,
    mpi: MpiOption = None,
    interpose: Annotated[
        bool, typer.Option("--interpose", help="Also preload libearlybird, below the recorder.")
    ] = False,
    openmp: Annotated[
        str | None,
        typer.Option(
            help="OpenMP runtime to run the program on, LLVM's or Intel's, so that the arrivals of threads "
            "are recorded, also of programs that GCC compiled: its path, or auto to find one.",
            metavar="FILE|auto",
        ),
    ] = None,
    events: Annotated[
        str,
        typer.Option(
            metavar="N|all",
            help="Keep the latest N calls and messages of each rank with their times, or all of them as far "
            "as --events-size suffices, 64 bytes each: show and report then say who waits for whom, and "
            "`export --to chrome-trace` draws a timeline.",
        ),
    ] = "0",
    events_size: Annotated[
        str | None,
        typer.Option(
            help="What `--events all` may write for the ranks of one node together; when that is full the "
            "oldest events go.",
            metavar="SIZE",
            show_default="1GiB",
        ),
    ] = None,
    merge: Annotated[
        Path | None,
        typer.Option(
            help="Run nothing: complete a recording whose `earlybird record` was killed, or to which files "
            "of other nodes were copied, and print it.",
            metavar="REC",
        ),
    ] = None,
    json: bool = AS_JSON,
) -> int:
    """Run a command as `earlybird exec` does, with a recorder in its ranks, and print what they sent.

    Messages, one-sided communication, collectives and files are counted by phase, peer, call, communicator
    and size class, and the time in each call is added up; without --events no message is kept. The exit
    status is the command's. A rank that is killed leaves what it had recorded some moments before. With
    --json the command's stdout goes to stderr.
    """
    if merge is not None:
        others = (command, output, mpi, interpose, openmp, events != "0", events_size)
        if any(option not in (None, False, []) for option in others):
            raise InputError("--merge runs nothing; leave out the command and all options but --json")
        _print(merge, json)
        return 0
    kept = _kept_events(events, events_size)
    if not command or output is None:
        missing = "a command" if not command else "-o REC"
        raise InputError(f"record needs {missing}, as in: earlybird record -o rec -- mpiexec -n 8 ./app")
    runtimes = () if openmp is None else (openmp_runtime(openmp),)
    request = Request(command, mpi, not interpose, None, records=True, others=runtimes)
    program, arguments, environment = prepare(request)
    with recording_into(output, {"command": command, **_facts()}):
        environment |= {"EARLYBIRD_RECORD": str(output.resolve()), **kept}
        return _record(output, program, arguments, environment, json)


def _record(output: Path, program: str, arguments: list[str], environment: dict[str, str], json: bool) -> int:
    """Run the command, print what its ranks recorded in `output`, and return the exit status."""
    try:
        status = _run(program, arguments, environment, json)
    except InputError:
        discard_if_empty(output)
        raise
    # Of a command that succeeded the files may be on other nodes: --merge needs the folder.
    if status and discard_if_empty(output):
        note(
            f"warning: no rank wrote to {output}, which is removed: the command ended with status {status}, "
            "perhaps before MPI_Init, or its program is not linked with the shared library of this MPI"
        )
    else:
        try:
            _print(output, json)
            sys.stdout.flush()
        except (InputError, WorkError) as error:  # the status is the command's
            note(f"warning: {error}")
        except BrokenPipeError:
            discard(sys.stdout)
        except OSError as error:
            discard(sys.stdout)
            note(f"warning: cannot write the output: {cause_of(error)}; the recording is in {output}")
            status = status or 1
    return status


def _kept_events(events: str, size: str | None) -> dict[str, str]:
    """What the recorder's variables say of --events and --events-size."""
    if events == "all":
        num_bytes = parse_bytes(size if size is not None else EVENTS_SIZE, "--events-size")
        if num_bytes < _MIN_EVENTS_BYTES:
            raise InputError(
                f"--events-size is {size}; give at least {size_argument(_MIN_EVENTS_BYTES)} for the ranks "
                "of a node"
            )
        return {"EARLYBIRD_RECORD_EVENTS": "all", "EARLYBIRD_RECORD_EVENTS_BYTES": str(num_bytes)}
    if size is not None:
        raise InputError("--events-size is of `--events all`; give both, or the number of events alone")
    number = whole_number(events)
    if number is None or number > MAX_EVENTS:
        raise InputError(
            f"--events is {shortened(events)}; give how many to keep of each rank, at most {MAX_EVENTS}, or "
            "all"
        )
    return {"EARLYBIRD_RECORD_EVENTS": events}


def _facts() -> dict[str, Any]:
    """Under what conditions the command is started, as the provenance of a run says it."""
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"started": started, "versions": {"earlybird": __version__}, "host": describe()}


def _print(path: Path, as_json: bool) -> None:
    """Look up the functions that call the MPI, and print the recording."""
    recording = _name_functions(load_recording(path))
    print_recording(recording, Format.json if as_json else Format.table)
    if recording.ranks:
        note(f"next: earlybird report {path_argument(path)} -o report.html")


def _name_functions(recording: Recording) -> Recording:
    """With the functions that call the MPI, as long as the program is as it was recorded."""
    offsets: dict[str, set[int]] = defaultdict(set)
    for one in recording.ranks.values():
        for phase in one.phases.values():
            for step in phase.steps:
                offsets[step.module].add(step.offset)
        for site in (*one.sites.values(), *(opened.site for opened in one.open_calls if opened.site)):
            offsets[site.module].add(site.offset)
        for arrivals in one.arrivals:
            offsets[arrivals.site.module].add(arrivals.site.offset)
    found = {module: function_names(module, places) for module, places in offsets.items()}
    lines = {module: source_lines(module, places) for module, places in offsets.items()}
    if not any(found.values()) and not any(lines.values()):
        return recording
    try:
        save_functions(recording.path, found, lines)
    except (InputError, WorkError) as error:
        cause = str(error).partition(";")[0]
        note(
            f"warning: functions are not named: {cause}; when it can be written, run `earlybird record "
            f"--merge {path_argument(recording.path)}`"
        )
        return recording
    return load_recording(recording.path)


def _run(program: str, arguments: list[str], environment: dict[str, str], is_quiet: bool) -> int:
    """Return the exit status of the command; as a shell's if a signal ended it. Signals to this process reach
    it."""
    with orphans_adopted() as seen:  # ranks may outlive a launcher that is killed
        status = _ended(program, arguments, environment, is_quiet, seen)
        if status:
            seen.remove_left()
    return status if status >= 0 else 128 - status


def _ended(
    program: str, arguments: list[str], environment: dict[str, str], is_quiet: bool, seen: Seen
) -> int:
    """Run the command and return its status; what it has in shared memory is `seen` meanwhile."""
    # What is ignored, as SIGHUP under nohup, the command ignores as well.
    passed_on = {number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN}
    awaited = {*passed_on, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    try:
        try:
            process = subprocess.Popen(
                arguments, executable=program, env=environment, stdout=sys.stderr if is_quiet else None,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
            )  # fmt: skip
        except OSError as error:
            raise cannot_run(program, error) from error
        while process.poll() is None:
            came = signal.sigtimedwait(awaited, max(seen.next_look_s - time.monotonic(), 0.0))
            is_passed_on = came is not None and came.si_signo in passed_on
            if is_passed_on or time.monotonic() >= seen.next_look_s:
                seen.look()
            if is_passed_on and came.si_code != _OF_KERNEL:
                with contextlib.suppress(OSError):  # such as that of a setuid program
                    process.send_signal(came.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process.returncode


command = make_command(
    record, name="record", example="earlybird record -o rec --mpi mpich -- mpiexec -n 8 ./app"
)
command.allow_interspersed_args = False  # what follows the first argument belongs to the command
