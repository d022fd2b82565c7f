"""The ranks of other nodes of a recording that is being made, as the agents of these nodes show them in its
folder."""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from earlybird.data.node_pages import NodePage, NodePages, load_node_pages, load_node_serial
from earlybird.data.rank_states import ENDED

# An agent that has not written for so many of its periods, and some seconds, is not reached.
_PERIODS, _SLACK_S, _POLL_S = 2.5, 1.0, 0.1
# For the agents of a job that has ended to see that.
_END_S = 3.0


@dataclass(frozen=True)
class RemotePage:
    """The page of a rank of another node.

    Attributes
    ----------
    first, second : two copies; what they have in common was so at a moment between two looks at pages of
        this node.
    now_s : when the second one was made, by CLOCK_MONOTONIC of the other node.
    is_reached : whether the agent of the node still writes.
    """

    first: NodePage
    second: NodePage
    now_s: float
    is_reached: bool


def files_of_agents(recording: Path, *, are_all: bool = False) -> list[Path]:
    """Return the files of all agents; `are_all`: also those that were not completed. Empty if the folder
    cannot be read now."""
    with contextlib.suppress(OSError), os.scandir(recording) as entries:
        names = sorted(entry.name for entry in entries if entry.name.startswith("rank-"))
        return [
            recording / name for name in names if name.endswith(".pages") or (are_all and ".pages." in name)
        ]
    return []


class LookGivenUp(Exception):
    """Something else is more urgent than the pages of other nodes."""


class OtherNodes:
    """The pages of the nodes that have any which are wanted: `is_wanted` tells it by name and content."""

    def __init__(self, recording: Path, is_wanted: Callable[[str, NodePage], bool]):
        self._nodes: dict[Path, NodePages] = {}
        for path in files_of_agents(recording):
            node = load_node_pages(path)
            if node is None:
                continue
            wanted = {name: page for name, page in node.pages.items() if is_wanted(name, page)}
            if wanted:
                self._nodes[path] = replace(node, pages=wanted)

    def again(self, *, is_over: bool, is_urgent: Callable[[], bool] = lambda: False) -> dict[str, RemotePage]:
        """Return the pages by name, with a second copy of each that was begun after the first was seen.

        It waits for that: some seconds for an agent that has stopped writing, or for all to see that the job
        `is_over`. Raise LookGivenUp if something else `is_urgent` meanwhile.
        """
        begin_s = time.monotonic()
        latest = dict(self._nodes)
        reached = set()
        waiting = set(self._nodes)
        while waiting:
            for path in sorted(waiting):
                first = self._nodes[path]
                now = load_node_serial(path)
                # The next one may have been begun before the first was seen.
                is_new = now is not None and (
                    now.is_final or (now.serial >= first.serial + 2 and not is_over)
                )
                limit_s = _END_S if is_over or now is None else _PERIODS * now.period_s + _SLACK_S
                if now is not None and not is_new and time.monotonic() - begin_s <= limit_s:
                    continue
                waiting.discard(path)
                whole = load_node_pages(path) if now is not None else None
                if whole is None:  # its ranks have left MPI_Finalize
                    latest.pop(path, None)
                    continue
                latest[path] = whole
                if is_new:
                    reached.add(path)
            if waiting and is_urgent():
                raise LookGivenUp
            if waiting:
                time.sleep(_POLL_S)
        pages = {}
        for path, node in latest.items():
            before = self._nodes[path].pages
            for name, page in node.pages.items():
                # An ended process of an earlier job may have had the same id on another node.
                is_other = name in pages and page.state == ENDED
                if name in before and not is_other:
                    pages[name] = RemotePage(before[name], page, node.now_s, path in reached)
        return pages
