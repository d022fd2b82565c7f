"""The communicators of a recording, each once for all ranks that know it, with the calls on it."""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from earlybird.data import labels
from earlybird.data.recorded_rank import CALL, SENT, STARTED, Communicator
from earlybird.data.recording import Recording


@dataclass(frozen=True)
class CommunicatorTotal:
    """The totals of a communicator, as its first rank knows it.

    Attributes
    ----------
    known_by : the number of ranks that used it.
    alike : how many communicators this row stands for, with the same name, members and topology.
    calls : calls of all ranks.
    bytes : bytes sent in messages, and passed to collectives.
    time_s : time of all ranks.
    """

    communicator: Communicator
    known_by: int
    alike: int
    calls: int
    bytes: int
    time_s: float


def communicator_totals(recording: Recording) -> list[CommunicatorTotal]:
    """Return the totals of distinct communicators, the one with most time first."""
    first: dict[Hashable, Communicator] = {}
    known: Counter[Hashable] = Counter()
    alike: dict[Hashable, int] = {}
    sums: dict[Hashable, np.ndarray] = {}
    for one in recording.ranks.values():
        own: Counter[Hashable] = Counter()
        columns = _columns(one.entries)
        number = one.entries["communicator"]
        for k, communicator in one.communicators.items():
            key = _key(communicator)
            first.setdefault(key, communicator)
            own[key] += 1
            sums[key] = sums.get(key, np.zeros(3, np.int64)) + columns[number == k].sum(axis=0)
        known.update(own.keys())
        for key, count in own.items():
            alike[key] = max(alike.get(key, 0), count)
    totals = [
        CommunicatorTotal(
            communicator, known[key], alike[key], int(sums[key][0]), int(sums[key][1]), 1e-9 * sums[key][2]
        )
        for key, communicator in first.items()
    ]
    return sorted(totals, key=lambda total: (-total.time_s, -total.bytes, total.communicator.name))


def _columns(entries: np.ndarray) -> np.ndarray:
    """Return an array (entries, 3): calls, bytes sent or passed to a collective, nanoseconds."""
    role, call = entries["role"], entries["call"]
    # MPI_Alltoallv and the like have their blocks as messages, and their sum with the call.
    is_summed = ((role == CALL) | (role == STARTED)) & ~np.isin(call, call[role == SENT])
    passed = np.where((role == SENT) | is_summed, entries["bytes"], 0)
    calls = np.where(role == STARTED, 0, entries["calls"])
    return np.column_stack([calls, passed, entries["time_ns"]]).astype(np.int64)


def _key(communicator: Communicator) -> Hashable:
    """Return a key that is equal for the same communicator on all ranks; the two groups are exchanged on the
    remote side."""
    groups = frozenset(
        members if isinstance(members, range) else tuple(members)
        for members in (communicator.members, communicator.remote_members)
    )
    return communicator.name, groups, communicator.topology, communicator.dims, communicator.periods


def topology_text(communicator: Communicator) -> str:
    """Return `Cartesian, 4x2, periodic in dimension 0`, `graph`, `distributed graph` or `none`."""
    if communicator.topology != "cart":
        return {"dist_graph": "distributed graph"}.get(communicator.topology, communicator.topology)
    dims = "x".join(map(str, communicator.dims)) or "no dimensions"
    periodic = [str(k) for k, period in enumerate(communicator.periods) if period]
    return f"Cartesian, {dims}" + (f", periodic in dimension {labels.listed(periodic)}" if periodic else "")
