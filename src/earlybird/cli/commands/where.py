"""`earlybird where`: who waits for whom in a program that is being recorded."""

import sys
import time
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from earlybird.analysis.stuck.verdict import judge
from earlybird.cli.options.command import AS_JSON, make_command
from earlybird.data.errors import InputError
from earlybird.data.rank_states import RUNS, STOPPED, RankState, Where
from earlybird.data.recording import is_being_recorded
from earlybird.data.shell_commands import path_argument
from earlybird.launch.running_ranks import look
from earlybird.present.render.data import print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line
from earlybird.present.subjects.where.answer import print_where, where_as_json

_FOLLOW_S = 2.0


def where(
    recording: Annotated[
        Path, typer.Argument(metavar="REC", help="Folder of `earlybird record`, whose program runs.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Look again until the program ends, and print what has changed.")
    ] = False,
    json: bool = AS_JSON,
) -> None:
    """Print who waits for whom in a program that is being recorded: why it hangs, or who computes.

    The program is neither interrupted nor slowed down: each rank keeps where its threads are in a page
    that this command reads. An agent on each other node copies the pages of its ranks to the folder;
    nodes that cannot be reached are named. The first sentence says what is wrong: a deadlock, a message
    or a collective that does not come, or ranks that compute, are stopped or have ended.
    """
    states = _look(recording)
    if not states:
        raise InputError(_nobody(recording))
    answer = judge(states)
    _print(answer, json, follow)
    while follow:
        time.sleep(_FOLLOW_S)
        before = _essence(answer)
        if not (states := look(recording)) or not _is_running(recording, states):
            note("the program has ended")
            return
        answer = judge(states)
        if _essence(answer) != before:
            if not json:
                print_line()
            _print(answer, json, follow)


def _look(recording: Path) -> dict[int, RankState]:
    """Return the states of the ranks; raise InputError if the folder is no recording that is being made."""
    if recording.is_file():
        raise InputError(f"{recording} is a file; give the folder that `earlybird record` writes")
    is_locked = is_being_recorded(recording)
    states = look(recording)
    if not is_locked and not _is_running(recording, states):
        raise InputError(
            f"the recording {recording} is finished, and no rank of it runs on this node; "
            f"`earlybird show {path_argument(recording)}` prints it"
        )
    return states


def _is_running(recording: Path, states: dict[int, RankState]) -> bool:
    if is_being_recorded(recording):
        return True
    return any(state.threads and state.state in (RUNS, STOPPED) for state in states.values())


def _nobody(recording: Path) -> str:
    return (
        f"no rank of the program in {recording} can be seen: it has not left MPI_Init, runs on nodes that "
        "do not share the folder, or uses no MPI that the recorder reaches; try again later, or on a node "
        "where it runs"
    )


def _essence(answer: Where) -> tuple[object, ...]:
    """Return what an answer says, without durations."""
    calls = tuple(
        (rank, thread.call, thread.is_inside, thread.place)
        for rank, state in answer.ranks.items()
        for thread in state.threads
        if answer.verdict != "running"
    )
    return (answer.verdict, answer.guilty, answer.cycle, calls)


def _print(answer: Where, as_json: bool, is_one_of_many: bool) -> None:
    """Print an answer; as JSON one of many is a line."""
    if not as_json:
        print_where(answer)
    elif is_one_of_many:
        print_line(dumps(where_as_json(answer)))
    else:
        print_json(where_as_json(answer))
    sys.stdout.flush()


command = make_command(where, name="where", example=["earlybird where rec", "earlybird where rec --follow"])
