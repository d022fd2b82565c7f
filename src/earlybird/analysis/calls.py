"""Sums the time in the calls of a recording, by call and rank, as shares of the run and their spread over
ranks."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from earlybird.data.recorded_rank import STARTED
from earlybird.data.recording import Recording

# Ranks wait for each other in it, and no program can do without.
FINALIZE = "MPI_Finalize"


@dataclass(frozen=True)
class Spread:
    """The lowest, median and highest share of the run over ranks, and the ranks of the ends."""

    low: float
    median: float
    high: float
    low_rank: int
    high_rank: int


@dataclass(frozen=True)
class CallTotal:
    """The total of one or several calls on all ranks.

    Attributes
    ----------
    time_s : time of all ranks.
    is_in_run : false for calls that precede the run.
    share : the part of the time that is in the run, divided by the time of the runs.
    spread : spread of this share over ranks.
    """

    name: str
    calls: int
    messages: int
    bytes: int
    time_s: float
    is_in_run: bool
    share: float
    spread: Spread


@dataclass(frozen=True, eq=False)
class CallTimes:
    """The calls of each rank, the function with most time first.

    Attributes
    ----------
    names : the C functions that were called.
    ranks : int64 of shape (R,), the ranks with a file, in order.
    run_s : shape (R,), from MPI_Init to the end of each rank.
    calls, messages, bytes : int64 of shape (C, R); messages are those sent, otherwise those received; `bytes`
        are those of messages, otherwise of collectives.
    time_s : shape (C, R). Times of several threads of a rank add up.
    num_threads : the largest number of threads of a rank that called the MPI.
    """

    names: tuple[str, ...]
    ranks: np.ndarray
    run_s: np.ndarray
    calls: np.ndarray
    messages: np.ndarray
    bytes: np.ndarray
    time_s: np.ndarray
    num_threads: int

    @cached_property
    def in_run(self) -> list[int]:
        """The calls whose time is part of the run, which begins when MPI_Init ends."""
        return [k for k, name in enumerate(self.names) if not name.startswith("MPI_Init")]

    @property
    def with_time(self) -> list[int]:
        """The calls of the run that took measurable time."""
        return [k for k in self.in_run if self.time_s[k].any()]

    @cached_property
    def totals(self) -> list[CallTotal]:
        """The total of each call."""
        return [self._total(name, [k]) for k, name in enumerate(self.names)]

    @cached_property
    def whole(self) -> CallTotal:
        """The total of all calls together."""
        return self._total("all calls", list(range(len(self.names))))

    def _total(self, name: str, calls: list[int]) -> CallTotal:
        in_run = [k for k in calls if k in self.in_run]
        whole_s = float(self.run_s.sum())
        return CallTotal(
            name,
            int(self.calls[calls].sum()),
            int(self.messages[calls].sum()),
            int(self.bytes[calls].sum()),
            float(self.time_s[calls].sum()),
            bool(in_run),
            float(self.time_s[in_run].sum()) / whole_s if whole_s else 0.0,
            self._spread(self.shares[in_run].sum(axis=0)),
        )

    @property
    def costliest(self) -> CallTotal | None:
        """The call of the run with most time, FINALIZE only if there is no other; None if none took time."""
        calls = [k for k in self.with_time if self.names[k] != FINALIZE] or self.with_time
        return self.totals[calls[0]] if calls and self.whole.share else None

    @cached_property
    def shares(self) -> np.ndarray:
        """The time of each rank in each call, divided by that of its run, of shape (C, R)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares: np.ndarray = np.where(self.run_s > 0, self.time_s / self.run_s, 0.0)
            return shares

    @cached_property
    def in_mpi(self) -> np.ndarray:
        """The share of the run of each rank inside MPI, of shape (R,)."""
        in_mpi: np.ndarray = self.shares[self.in_run].sum(axis=0)
        return in_mpi

    def _spread(self, shares: np.ndarray) -> Spread:
        """Return the spread of a share of each rank, of shape (R,), for at least one rank."""
        low, high = int(np.argmin(shares)), int(np.argmax(shares))
        return Spread(
            float(shares[low]), float(np.median(shares)), float(shares[high]),
            int(self.ranks[low]), int(self.ranks[high]),
        )  # fmt: skip


def call_times(recording: Recording) -> CallTimes:
    """Return the sums of the entries of each rank by call."""
    ranks = list(recording.ranks.values())
    numbers: dict[str, int] = {}
    number_of = {
        calls: np.array([numbers.setdefault(name, len(numbers)) for name in calls], dtype=np.int64)
        for calls in dict.fromkeys(rank.calls for rank in ranks)
    }
    shape = len(numbers), len(ranks)
    calls, messages, message_bytes, all_bytes, time_ns = (np.zeros(shape, np.int64) for _ in range(5))
    for place, rank in enumerate(ranks):
        rows = rank.entries[~recording.is_counted_by_sender(rank)]
        call = number_of[rank.calls][rows["call"]]
        for total, name in ((messages, "messages"), (all_bytes, "bytes"), (time_ns, "time_ns")):
            np.add.at(total[:, place], call, rows[name].astype(np.int64))
        is_call = rows["role"] != STARTED  # starts of persistent collectives are calls of MPI_Start
        np.add.at(calls[:, place], call[is_call], rows["calls"][is_call].astype(np.int64))
        for name, (num, time_s) in rank.open_time.items():
            calls[numbers[name], place] += num
            time_ns[numbers[name], place] += round(1e9 * time_s)
        moved = rows["messages"] > 0
        np.add.at(message_bytes[:, place], call[moved], rows["bytes"][moved].astype(np.int64))
    num_bytes = np.where(messages > 0, message_bytes, all_bytes)
    names = list(numbers)
    # The functions without a call have no entry.
    used = [k for k in range(len(names)) if calls[k].any() or time_ns[k].any() or all_bytes[k].any()]
    order = sorted(used, key=lambda k: (-int(time_ns[k].sum()), names[k]))
    return CallTimes(
        tuple(names[k] for k in order),
        np.array(list(recording.ranks), dtype=np.int64),
        np.array([rank.run_s for rank in ranks]),
        calls[order], messages[order], num_bytes[order], 1e-9 * time_ns[order],
        max((np.unique(rank.entries["thread"]).size for rank in ranks), default=0),
    )  # fmt: skip
