"""Joins what the threads of all ranks do with each other outside the MPI: who creates, joins and meets
whom."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from earlybird.analysis.events import NO_COMMUNICATOR, Events, row_numbers
from earlybird.data.recorded_rank import CALL, NO_PEER
from earlybird.data.recorded_trace import (
    BEGINS,
    CREATES,
    ENDS,
    JOINS,
    MEETS,
    NO_TAG,
    THREAD,
    RankTrace,
)
from earlybird.data.recording import Recording


@dataclass(frozen=True, eq=False)
class ThreadEvents:
    """What the threads of all ranks do, by rank and then in the order of the records: arrays (N,).

    Attributes
    ----------
    rank, thread : of each.
    event, site, identity, num_meeting : as in `RankThreads`.
    name : name of the function.
    begin_s, end_s : by the clock of the rank's host, or by a common clock.
    """

    rank: np.ndarray
    thread: np.ndarray
    event: np.ndarray
    name: np.ndarray
    site: np.ndarray
    identity: np.ndarray
    num_meeting: np.ndarray
    begin_s: np.ndarray
    end_s: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)


def thread_events_of(recording: Recording, traces: Mapping[int, RankTrace]) -> ThreadEvents:
    """Return those of all traces."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ThreadEvents.__dataclass_fields__}
    for rank, trace in sorted(traces.items()):
        threads, calls = trace.threads, recording.ranks[rank].calls
        parts["rank"].append(np.full(len(threads), rank))
        parts["name"].append(np.array(calls, object)[threads.call])
        for name in set(parts) - {"rank", "name"}:
            parts[name].append(getattr(threads, name))
    types = {"name": object, "site": np.uint64, "begin_s": float, "end_s": float}
    return ThreadEvents(
        **{
            name: np.concatenate([np.empty(0), *columns], dtype=types.get(name, np.int64), casting="unsafe")
            for name, columns in parts.items()
        }
    )


def with_threads(events: Events, threads: ThreadEvents) -> Events:
    """Return the events of the MPI, at their positions, and then those of threads, as calls of the kind
    THREAD with the identity as their bytes."""
    numbers = {name: k for k, name in enumerate(events.names)}
    call = np.array([numbers.setdefault(name, len(numbers)) for name in threads.name.tolist()], np.int64)
    num = len(threads)
    same = {
        "peer": NO_PEER,
        "tag": NO_TAG,
        "kind": THREAD,
        "role": CALL,
        "order": 0,
        "request": 0,
        "calls": 1,
    }
    added = {name: np.full(num, value) for name, value in same.items()} | {
        "communicator": np.full(num, NO_COMMUNICATOR), "posted_s": np.full(num, np.nan),
        "bytes": threads.identity, "call": call,
    } | {name: getattr(threads, name) for name in ("rank", "thread", "site", "begin_s", "end_s")}  # fmt: skip
    columns = {
        name: np.concatenate([getattr(events, name), added[name]], dtype=getattr(events, name).dtype,
                             casting="unsafe")
        for name in Events.__dataclass_fields__ if name != "names"
    }  # fmt: skip
    return Events(tuple(numbers), **columns)


def are_idle(threads: ThreadEvents, events: Events) -> np.ndarray:
    """Return whether each event, (N,), is the beginning of a thread that does nothing after it, such as one
    that an OpenMP runtime keeps."""
    num = len(threads)
    call = np.flatnonzero(events.calls > 0)
    rank, thread, begin_s = (
        np.concatenate([getattr(threads, name), getattr(events, name)[call]])
        for name in ("rank", "thread", "begin_s")
    )
    begins = np.concatenate([threads.event == BEGINS, np.zeros(len(call), bool)])
    slot = row_numbers(rank, thread)
    order = np.lexsort([begin_s, slot])
    following_is_other = np.diff(slot[order], append=-1) != 0
    following_is_other[:-1] |= begins[order][1:]
    is_idle = np.zeros(len(order), bool)
    is_idle[order] = begins[order] & following_is_other
    idle: np.ndarray = is_idle[:num]
    return idle


@dataclass(frozen=True, eq=False)
class ThreadWaits:
    """Who waits for whom, by positions in the events.

    Attributes
    ----------
    pairs : (P, 2) an event, and the one that waits for it: a thread creates one, which then begins; a thread
        ends, and another one that joins it returns.
    meetings : the waits of the threads that meet at a barrier each time.
    """

    pairs: np.ndarray
    meetings: list[np.ndarray]


def thread_waits(threads: ThreadEvents, is_usable: np.ndarray) -> ThreadWaits:
    """Return the pairs and meetings of which all events are usable, (N,)."""
    pairs = [_pairs(threads, is_usable, CREATES, BEGINS), _pairs(threads, is_usable, ENDS, JOINS)]
    return ThreadWaits(np.concatenate(pairs), _meetings(threads, is_usable))


def _pairs(threads: ThreadEvents, is_usable: np.ndarray, first: int, second: int) -> np.ndarray:
    key = row_numbers(threads.rank, threads.identity) if len(threads) else np.empty(0, np.int64)
    here, there = (np.flatnonzero(is_usable & (threads.event == event)) for event in (first, second))
    _, of_here, of_there = np.intersect1d(key[here], key[there], return_indices=True)
    pairs: np.ndarray = np.column_stack([here[of_here], there[of_there]])
    return pairs


def _meetings(threads: ThreadEvents, is_usable: np.ndarray) -> list[np.ndarray]:
    """Return the rounds of each barrier: all threads of a round have entered it before one of them leaves,
    and so before one enters the next."""
    found: list[np.ndarray] = []
    here = np.flatnonzero(is_usable & (threads.event == MEETS) & (threads.num_meeting > 0))
    if not len(here):
        return found
    key = row_numbers(threads.rank[here], threads.identity[here])
    order = np.lexsort([threads.begin_s[here], key])
    here, key = here[order], key[order]
    for waits in np.split(here, np.flatnonzero(np.diff(key)) + 1):
        num, at = int(threads.num_meeting[waits[0]]), 0
        while at + num <= len(waits):
            together = waits[at : at + num]
            is_round = len(np.unique(threads.thread[together])) == num and (
                threads.end_s[together].min() >= threads.begin_s[together].max()
            )
            if is_round:
                found.append(together)
            at += num if is_round else 1  # after a round that began before the events
    return found
