"""Watches the ranks of a recording, and reports who waits for whom once nobody gets on."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from earlybird.analysis.stuck.sentences import named_ranks
from earlybird.analysis.stuck.verdict import FOREVER, judge
from earlybird.data.errors import cause_of
from earlybird.data.rank_states import FINALIZED, PARTITIONED_SEND, RUNS, STOPPED, RankState, Where
from earlybird.launch.other_nodes import LookGivenUp
from earlybird.launch.recorded_command import has_signal
from earlybird.launch.running_ranks import Places, look, progress_of
from earlybird.present.render.notes import note

# How often to look, as a part of the time after which ranks are stuck.
_LOOKS, _LONGEST_S, _AGAIN_S = 8, 5.0, 0.5
# Ranks of a job that is being ended still get on for a moment; those that do at so many looks go on.
_MIN_LOOKS_ON = 3


class StuckWatch:
    """Reports when no rank has got on for `limit_s`, and asks for the end of the command if `may_stop` and it
    can never get on.

    Attributes
    ----------
    next_look_s : when to look (seconds of time.monotonic).
    latest : latest answer; None before the first.
    has_got_on : whether ranks have got on since.
    """

    def __init__(self, recording: Path, limit_s: float, may_stop: bool, report: Callable[[Where], None]):
        self._recording, self._limit_s, self._may_stop, self._report = recording, limit_s, may_stop, report
        self._interval_s = min(limit_s / _LOOKS, _LONGEST_S)
        self._progress: dict[tuple[str, str], int] = {}
        self._known: dict[tuple[str, str], int] = {}
        self._since_s = time.monotonic()
        self._reported: tuple[str, tuple[int, ...]] | None = None
        self._noted: set[str] = set()
        self._is_broken = False
        self._places = Places()
        self.next_look_s = self._since_s + self._interval_s
        self.latest: Where | None = None
        self._num_looks_on = 0

    @property
    def has_got_on(self) -> bool:
        return self._num_looks_on >= _MIN_LOOKS_ON

    def look(self) -> bool:
        """Look whether ranks get on; return whether the command is to be ended."""
        if self._is_broken:
            return False
        try:
            return self._look()
        except LookGivenUp:
            return False
        except OSError as error:  # of a file system that fails for a moment
            self._note_once(f"--stuck cannot look at the ranks now, and tries again: {cause_of(error)}")
            return False
        except Exception as error:  # nothing that goes wrong here may end the program
            self._is_broken = True
            note(f"--stuck cannot look at the ranks any longer: {type(error).__name__}: {error}")
            return False
        finally:  # a look may take seconds
            self.next_look_s = math.inf if self._is_broken else time.monotonic() + self._interval_s

    def _look(self) -> bool:
        progress, now_s = progress_of(self._recording), time.monotonic()
        # A file of another node that cannot be read for a moment says nothing of its ranks.
        if any(self._known.get(page) != number for page, number in progress.items()):
            self._since_s, self._reported = now_s, None
            self._num_looks_on += 1
        self._progress = progress
        self._known |= progress
        if now_s - self._since_s < self._limit_s:
            return False
        if not progress:
            self._note_once(
                "--stuck sees no rank: none has left MPI_Init, or none uses an MPI that the recorder reaches"
            )
            return False
        return self._judge()

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            note(text)
        self._noted.add(text)

    def _judge(self) -> bool:
        """Report what has changed; return whether the command is to be ended."""
        states = look(self._recording, places=self._places, is_urgent=has_signal)
        where = judge(states)
        # Ranks that have ended meanwhile have got on.
        is_alive = any(state.state in (RUNS, STOPPED) for state in states.values())
        if not is_alive or where.verdict == "running" or progress_of(self._recording) != self._progress:
            return False
        if (where.verdict, where.guilty) != self._reported:
            # Ranks of a job that is being killed do not end at once.
            if self._reported is not None and not self._is_confirmed(where):
                return False
            self._reported = where.verdict, where.guilty
            self.latest, self._num_looks_on = where, 0
            self._report(where)
        if not self._may_stop:
            return False
        if where.verdict not in FOREVER:
            self._note_once(
                f"--stop does not end the command: ranks may get on after the verdict {where.verdict}"
            )
            return False
        concurrent = [rank for rank in where.guilty if where.ranks[rank].is_concurrent]
        if where.verdict == "partitioned" and not any(map(_waits_for_its_own, where.ranks.values())):
            self._note_once(
                "--stop does not end the command: no rank waits for partitions that it must make ready itself"
            )
            return False
        if where.verdict == "partitioned" and concurrent:
            self._note_once(
                f"--stop does not end the command: another thread of {named_ranks(concurrent)} may make the "
                "partitions ready"
            )
            return False
        wakeful = [rank for rank, state in where.ranks.items() if state.may_wake]
        if wakeful:
            self._note_once(
                f"--stop does not end the command: threads of {named_ranks(wakeful)} outside of the MPI "
                "wait for a time or for events, and may go on"
            )
            return False
        is_end = self._is_confirmed(where)
        if is_end:
            note("no rank of these can get on, so --stop ends the command")
        return is_end

    def _is_confirmed(self, where: Where) -> bool:
        """Return whether another look says the same, and no rank has got on meanwhile."""
        if has_signal():
            raise LookGivenUp
        time.sleep(_AGAIN_S)
        again = judge(look(self._recording, places=self._places, is_urgent=has_signal))
        is_alike = (again.verdict, again.guilty, again.cycle) == (where.verdict, where.guilty, where.cycle)
        return is_alike and progress_of(self._recording) == self._progress


def last_state(recording: Path, latest: Where | None = None) -> Where | None:
    """Return who waited for whom when the ranks of a job ended that did not end by themselves; None if that
    is not known. `latest`: the answer while they were stuck, which says more."""
    try:
        return _last_state(recording, latest)
    except Exception as error:  # the exit status is the command's
        note(f"warning: cannot look at where the ranks were at last: {type(error).__name__}: {error}")
        return latest


def _last_state(recording: Path, latest: Where | None) -> Where | None:
    states = look(recording, is_over=True)
    if not any(state.threads for state in states.values()):
        return latest if any(state.state != FINALIZED for state in states.values()) else None
    if latest is not None:
        seen = {rank: state for rank, state in states.items() if state.threads}
        return replace(latest, ranks={**latest.ranks, **seen})
    where = judge(states, is_over=True)
    return where if where.verdict not in ("running", "unknown") else None


def _waits_for_its_own(state: RankState) -> bool:
    """Return whether a rank waits for a send whose partitions it has not made ready. What a receive waits for
    is not as certain: a send that is complete is not seen any more."""
    return any(
        awaited.kind == PARTITIONED_SEND and awaited.num_ready < awaited.partitions
        for thread in state.threads
        if thread.is_inside and thread.call in ("MPI_Wait", "MPI_Waitall")
        for awaited in thread.awaited
    )
