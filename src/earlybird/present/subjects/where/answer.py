"""Prints who waits for whom: a sentence and a table of the places in which ranks are, or JSON."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from earlybird.analysis.stuck.sentences import (
    awaited_text,
    communicator_text,
    named_ranks,
    request_text,
    seconds,
)
from earlybird.data.rank_states import (
    ENDED,
    FINALIZED,
    RUNS,
    SCHEMA,
    STOPPED,
    Awaited,
    RankState,
    ThreadState,
    Where,
)
from earlybird.present.core.table import Column, Table
from earlybird.present.render.terminal import print_captioned, print_line

STATES = {
    STOPPED: "stopped",
    ENDED: "has ended without MPI_Finalize",
    FINALIZED: "has left MPI_Finalize",
}
CANNOT_BE_SEEN = "cannot be seen"
MAX_AWAITED = 3


@dataclass(frozen=True)
class Place:
    """Threads in the same place: their ranks, the call, what it waits for, and the longest time."""

    ranks: tuple[int, ...]
    call: str
    awaited: str
    place: str
    since_s: float


def places_of(where: Where) -> list[Place]:
    """Return the places in which the threads are, those with most ranks last."""
    groups: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for rank, state in where.ranks.items():
        for thread in state.threads:
            key = (_call(state, thread), _awaited(where, state, thread), thread.place)
            groups.setdefault(key, []).append((rank, thread.since_s))
        if not state.threads:
            groups.setdefault((STATES.get(state.state, CANNOT_BE_SEEN), "", ""), []).append((rank, 0.0))
    places = [
        Place(tuple(rank for rank, _ in members), *key, max(since_s for _, since_s in members))
        for key, members in groups.items()
    ]
    return sorted(places, key=lambda place: (len(place.ranks), place.ranks))


def _call(state: RankState, thread: ThreadState) -> str:
    """Return where a thread is: a call, or that it computes."""
    if state.state != RUNS:
        return f"{STATES[state.state]} {'in' if thread.is_inside else 'after'} {thread.call}"
    if not thread.is_inside:
        return f"{'waits for another thread' if thread.is_idle else 'computes'} after {thread.call}"
    return f"polls with {thread.call}" if thread.is_polling else thread.call


def _awaited(where: Where, state: RankState, thread: ThreadState) -> str:
    pending = where.pending.get((state.rank, thread.number), ())
    texts = [
        f"{'' if each.call == thread.call else request_text(each, state)}{awaited_text(each, state)}".strip()
        for each in pending[:MAX_AWAITED]
    ]
    more = len(pending) - MAX_AWAITED
    return ", ".join([*texts, *([f"and {more} more"] if more > 0 else [])])


COLUMNS = (
    Column("ranks", lambda place: named_ranks(place.ranks).partition(" ")[2], left=True),
    Column("in", lambda place: place.call, left=True),
    Column("waits for", lambda place: place.awaited, optional=True, left=True, folded=True),
    Column("place", lambda place: place.place, optional=True, left=True, folded=True),
    Column("for", lambda place: seconds(place.since_s) if place.since_s else ""),
)


def print_where(where: Where) -> None:
    """Print the sentence and the table."""
    print_line(where.sentence)
    print_captioned(Table("Where the ranks are", COLUMNS, places_of(where)))


def where_as_json(where: Where) -> dict[str, Any]:
    """Return the answer as JSON."""
    return {
        "schema": SCHEMA,
        "verdict": where.verdict,
        "sentence": where.sentence,
        "guilty": list(where.guilty),
        "cycle": list(where.cycle),
        "threads": list(_threads(where)),
        "states": {str(rank): state.state for rank, state in where.ranks.items() if state.state != RUNS},
    }


def _threads(where: Where) -> Iterator[dict[str, Any]]:
    for rank, state in where.ranks.items():
        for thread in state.threads:
            yield {
                "rank": rank,
                "thread": thread.number,
                "call": thread.call if thread.is_inside else None,
                "site": thread.place,
                "since_s": round(thread.since_s, 3),
                "pending": [
                    _pending(state, awaited) for awaited in where.pending.get((rank, thread.number), ())
                ],
            }


def _pending(state: RankState, awaited: Awaited) -> dict[str, Any]:
    communicator = state.communicators.get(awaited.communicator)
    return {
        "peer": awaited.peer if awaited.peer >= 0 else None,
        "tag": awaited.tag if awaited.tag >= 0 else None,
        "communicator": communicator_text(communicator) if communicator else None,
        "bytes": awaited.bytes,
    }
