"""`earlybird record`: runs a program and records who sends how much to whom, and in which calls."""

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird import __version__
from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.cli.options.shared import MpiOption
from earlybird.cli.options.watching import StopOption, StuckOption, SynchronousOption
from earlybird.cli.session.stuck import StuckWatch, last_state
from earlybird.data.errors import InputError, WorkError, cause_of
from earlybird.data.kept_where import remove_where, save_where
from earlybird.data.rank_states import Where
from earlybird.data.recording import Recording, discard_if_empty, load_recording, recording_into
from earlybird.data.shell_commands import path_argument
from earlybird.launch.execution import Request, prepare
from earlybird.launch.recorded_command import (
    EVENTS_SIZE,
    event_variables,
    name_functions,
    run_recorded,
    signals_delayed,
)
from earlybird.launch.running_ranks import recorder_variables, remove_shared_pages, remove_stale_pages
from earlybird.machine.hardware import describe
from earlybird.machine.openmp import openmp_runtime
from earlybird.present.render.data import Format
from earlybird.present.render.notes import note
from earlybird.present.render.streams import discard
from earlybird.present.render.terminal import print_line
from earlybird.present.subjects.recording.terminal import print_recording
from earlybird.present.subjects.where.answer import print_where, where_as_json


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
            show_default=EVENTS_SIZE,
        ),
    ] = None,
    stuck: StuckOption = None,
    stop: StopOption = False,
    synchronous: SynchronousOption = False,
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
        others = (
            command,
            output,
            mpi,
            interpose,
            openmp,
            events != "0",
            events_size,
            stuck,
            stop,
            synchronous,
        )
        if any(option not in (None, False, []) for option in others):
            raise InputError("--merge runs nothing; leave out the command and all options but --json")
        _print(_named(merge), json)
        return 0
    if stop and stuck is None:
        raise InputError("--stop is for --stuck; give both, such as --stuck 60s --stop")
    kept = event_variables(events, events_size)
    if not command or output is None:
        missing = "a command" if not command else "-o REC"
        raise InputError(f"record needs {missing}, as in: earlybird record -o rec -- mpiexec -n 8 ./app")
    runtimes = () if openmp is None else (openmp_runtime(openmp),)
    request = Request(command, mpi, not interpose, None, records=True, others=runtimes)
    program, arguments, environment = prepare(request, note)
    remove_stale_pages()
    with recording_into(output, {"command": command, **_facts()}):
        environment |= recorder_variables(output) | kept
        if synchronous:
            environment["EARLYBIRD_RECORD_SYNCHRONOUS"] = "1"
        watch = StuckWatch(output, stuck, stop, _report_of(output, json)) if stuck is not None else None
        try:
            return _record(output, program, arguments, environment, json, watch)
        finally:
            with signals_delayed():
                remove_shared_pages(output)


def _report_of(output: Path, as_json: bool) -> Callable[[Where], None]:
    """Return what keeps and prints that ranks are stuck, while they are: with --json on stderr, as the output
    of the command."""

    def report(where: Where) -> None:
        _keep(output, where)
        if as_json:
            note(where.sentence)
            return
        print_where(where)
        print_line()
        sys.stdout.flush()

    return report


def _record(
    output: Path,
    program: str,
    arguments: list[str],
    environment: dict[str, str],
    json: bool,
    watch: StuckWatch | None,
) -> int:
    """Run the command, print what its ranks recorded in `output`, and return the exit status."""
    where = None
    try:
        status = run_recorded(program, arguments, environment, json, watch)
        # Of ranks that did not end by themselves the pages say where they were at last.
        latest = watch.latest if watch and not watch.has_got_on else None
        where = last_state(output, latest)
        if where is None:
            remove_where(output)
        else:
            _keep(output, where)
        if where is not None and latest is None:
            note(f"when the ranks ended: {where.sentence}")
    except InputError:
        discard_if_empty(output)
        raise
    # Of a command that succeeded the files may be on other nodes: --merge needs the folder.
    is_empty, recording = False, None
    try:  # a file system that fails does not change the status of the command
        is_empty = bool(status) and discard_if_empty(output)
        recording = None if is_empty else _named(output)
    except (InputError, WorkError) as error:
        note(f"warning: {error}")
    except OSError as error:
        note(f"warning: cannot read the recording {output}: {cause_of(error)}")
    if is_empty:
        note(
            f"warning: no rank wrote to {output}, which is removed: the command ended with status {status}, "
            "perhaps before MPI_Init, or its program is not linked with the shared library of this MPI"
        )
    elif recording is not None:
        try:
            _print(recording, json, where or (watch.latest if watch else None))
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


def _keep(output: Path, where: Where) -> None:
    """Keep an answer in the recording, if its file system takes it."""
    try:
        save_where(output, where_as_json(where))
    except (InputError, WorkError, OSError) as error:
        note(f"warning: {error}")


def _facts() -> dict[str, Any]:
    """Return the conditions under which the command is started, as the provenance of a run has them."""
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    return {"started": started, "versions": {"earlybird": __version__}, "host": describe()}


def _named(path: Path) -> Recording:
    """Return the recording with the functions that call the MPI."""
    return name_functions(load_recording(path), note)


def _print(recording: Recording, as_json: bool, where: Where | None = None) -> None:
    """Print the recording; as JSON also `where` it hung."""
    more = where_as_json(where) if where is not None else {}
    print_recording(recording, Format.json if as_json else Format.table, more)
    if recording.ranks:
        note(f"next: earlybird report {path_argument(recording.path)} -o report.html")


command = make_command(
    record, name="record", example="earlybird record -o rec --mpi mpich -- mpiexec -n 8 ./app"
)
command.allow_interspersed_args = False  # what follows the first argument belongs to the command
