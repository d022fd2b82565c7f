"""Which ranks of a launch have stopped: those whose heartbeats no longer grow in number while others' do.

Each rank keeps writing how many it has left, and what it does with which rank, to a file of its node:
native/kernels/nodes/heartbeat.cpp.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Self

_BEAT_S, _PREFIX = 0.25, "beat."
# A rank that stopped has missed at least so many.
_MIN_MISSED = 4
# Looks in the time in which a rank that has stopped leaves none.
_LOOKS = 8
# What a rank did, by the numbers of `Stage` in native/kernels/nodes/heartbeat.hpp.
_STAGES = (
    "while MPI started", "while it waited for the other nodes", "in small messages with {}",
    "in large messages with {}", "in the incast or outcast of {}", "while it described itself",
)  # fmt: skip


class Heartbeats:
    """A reader that polls the heartbeats in a folder within a `with` block.

    A slow heartbeat does not mean that a rank has stopped: a file system may be slow, a core shared, or a
    rank started later.
    """

    def __init__(self, folder: Path, stall_limit_s: float):
        self._folder = folder
        self._silence_s = max(stall_limit_s / 2, _MIN_MISSED * _BEAT_S)
        self._counts: dict[str, int] = {}
        self._growth_s: dict[str, float] = {}  # when the number was last seen to grow
        self._doing: dict[str, tuple[int, int]] = {}  # stage and the other rank
        self._end = Event()
        self._thread = Thread(target=self._keep_looking, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def hosts(self) -> set[str]:
        """The hosts that have left heartbeats."""
        return set(self._counts)

    @property
    def stopped(self) -> set[str]:
        """The hosts whose ranks left no heartbeat for at least half of the stall limit while others did."""
        last_s = max(self._growth_s.values(), default=0.0)
        return {host for host, growth_s in self._growth_s.items() if last_s - growth_s >= self._silence_s}

    def doing(self, host: str, hosts: Sequence[str]) -> str:
        """Return what the rank of a host did last, such as `in small messages with n1`; `hosts` are those of
        all ranks."""
        stage, rank = self._doing.get(host, (-1, -1))
        other = hosts[rank] if 0 <= rank < len(hosts) else "no node"
        return _STAGES[stage].format(other) if 0 <= stage < len(_STAGES) else ""

    def look(self, now_s: float) -> None:
        for path in self._folder.glob(f"{_PREFIX}*"):
            host = path.name.removeprefix(_PREFIX)
            try:
                count, *doing = map(int, path.read_text().split())
                self._doing[host] = (doing[0], doing[1])
            except (OSError, ValueError, IndexError):
                continue
            if count != self._counts.get(host):
                self._counts[host], self._growth_s[host] = count, now_s

    def _keep_looking(self) -> None:
        while not self._end.wait(self._silence_s / _LOOKS):
            self.look(time.monotonic())
        self.look(time.monotonic())
