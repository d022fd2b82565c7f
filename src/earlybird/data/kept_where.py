"""The file in which a recording keeps who waited for whom when its ranks were last stuck, or were ended."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from earlybird.data import files
from earlybird.data.rank_states import SCHEMA
from earlybird.data.schema import Natural, NotNegative, Rank, check_keys

KEPT_WHERE = "where.json"


class _Pending(TypedDict, total=False):
    peer: Rank | None
    tag: Natural | None
    communicator: str | None
    bytes: Natural | None


class _Thread(TypedDict, total=False):
    rank: Rank
    thread: Natural
    call: str | None
    site: str
    since_s: NotNegative
    pending: list[_Pending]


class _Where(TypedDict, total=False):
    schema: str
    verdict: str
    sentence: str
    guilty: list[Rank]
    cycle: list[Rank]
    threads: list[_Thread]
    states: dict[Rank, str]


@dataclass(frozen=True)
class KeptWhere:
    """Who waited for whom in a recorded job.

    Attributes
    ----------
    sentence : the answer.
    value : the JSON object, as `earlybird where --json` prints it.
    """

    sentence: str
    value: Mapping[str, Any]

    def open_s(self, rank: int) -> dict[int, tuple[str, float]]:
        """Return for each thread of a rank that was in a call its name, and for how long it had been
        there."""
        return {
            thread["thread"]: (thread["call"], thread["since_s"])
            for thread in self.value.get("threads", [])
            if thread.get("rank") == rank and thread.get("call") and {"thread", "since_s"} <= thread.keys()
        }


def save_where(path: Path, value: Mapping[str, Any]) -> None:
    """Write the answer, the JSON of `earlybird where`, to the folder of a recording."""
    files.write_json(path / KEPT_WHERE, value, follows_link=False)


def remove_where(path: Path) -> None:
    """Remove the answer from the folder of a recording, whose ranks have got on."""
    with contextlib.suppress(OSError):
        (path / KEPT_WHERE).unlink()


def load_where(path: Path) -> KeptWhere | None:
    """Return the answer in the folder of a recording, None without one; raise InputError if it is damaged."""
    if not (path / KEPT_WHERE).is_file():
        return None
    value = files.read_json(path / KEPT_WHERE, "answer of `earlybird where`", SCHEMA)
    check_keys(value, _Where, str(path / KEPT_WHERE), "remove the file, or record again")
    return KeptWhere(str(value.get("sentence", "")), value)
