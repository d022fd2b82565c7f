"""Runs a command for `exec` with its ranks watched, or with synchronous sends: nothing is counted."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

from earlybird.cli.session.stuck import StuckWatch, last_state
from earlybird.data.errors import InputError, WorkError
from earlybird.data.kept_where import save_where
from earlybird.data.rank_states import Where
from earlybird.data.recording import recording_into
from earlybird.data.shell_commands import path_argument
from earlybird.launch import interpose
from earlybird.launch.execution import Request, cannot_run, forget_before, prepare
from earlybird.launch.recorded_command import run_recorded, signals_delayed
from earlybird.launch.running_ranks import recorder_variables, remove_shared_pages, remove_stale_pages
from earlybird.present.render.notes import note
from earlybird.present.subjects.where.answer import where_as_json

_SYNCHRONOUS = {"EARLYBIRD_RECORD_SYNCHRONOUS": "1"}


def run_synchronous(request: Request) -> NoReturn:
    """Replace this process by a command in whose ranks standard sends are synchronous."""
    program, arguments, environment = _prepared(request)
    environment.pop("EARLYBIRD_RECORD", None)
    try:
        os.execve(program, arguments, environment | _SYNCHRONOUS)
    except OSError as error:
        raise cannot_run(program, error) from error


def run_watched(
    request: Request, output: Path, limit_s: float, *, may_stop: bool, is_synchronous: bool
) -> int:
    """Run a command whose ranks keep pages in the folder `output`; say when they are stuck. Return the exit
    status.

    The folder is kept if the ranks were stuck, or did not end by themselves.
    """
    program, arguments, environment = _prepared(request)
    remove_stale_pages()
    with recording_into(output, {"command": list(request.command), "watched": True}):
        environment |= recorder_variables(output) | {"EARLYBIRD_RECORD_PAGES": "only"}
        if is_synchronous:
            environment |= _SYNCHRONOUS
        watch = StuckWatch(output, limit_s, may_stop, lambda where: _report(output, where))
        where = None
        try:
            status = run_recorded(program, arguments, environment, False, watch)
            latest = None if watch.has_got_on else watch.latest
            where = last_state(output, latest)
            if where is not None:
                _keep(output, where)
                said = "" if latest else f"when the ranks ended: {where.sentence.rstrip('.')}; "
                note(f"{said}`earlybird show {path_argument(output)}` prints who waited for whom")
        except BaseException:
            where = None if watch.has_got_on else watch.latest
            raise
        finally:
            with signals_delayed():
                remove_shared_pages(output)
                if where is None:
                    shutil.rmtree(output, ignore_errors=True)
    return status


def _prepared(request: Request) -> tuple[str, list[str], dict[str, str]]:
    if interpose.inside_record():
        raise InputError(
            "--stuck and --synchronous of exec are not for commands inside of `earlybird record`, which has "
            "both; give them there"
        )
    prepared = prepare(request._replace(records=True), note)
    forget_before(request)
    return prepared


def _report(output: Path, where: Where) -> None:
    _keep(output, where)
    note(f"{where.sentence} (`earlybird where {path_argument(output)}` says more)")


def _keep(output: Path, where: Where) -> None:
    try:
        save_where(output, where_as_json(where))
    except (InputError, WorkError, OSError) as error:
        note(f"warning: {error}")
