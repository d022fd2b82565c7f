"""History: the times of each point over many runs, and the runs at which they changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from earlybird.data import files
from earlybird.data.run import Scalar
from earlybird.data.run_comparison import Difference
from earlybird.data.run_keys import ANY_CONFIG_TYPES, check_date
from earlybird.data.schema import (
    Extra,
    Natural,
    NotNegative,
    Positive,
    Record,
    Share,
    decode,
    require_not_negative,
)

SCHEMA = "earlybird.history/1"

ChangeKind = Literal["step", "drift"]


@dataclass(frozen=True)
class HistoryRun(Record):
    """A run of a history.

    Attributes
    ----------
    started : date and time in ISO 8601.
    name : name of the run.
    """

    name: str
    started: str


@dataclass(frozen=True)
class SeriesChange(Record):
    """A change of one point between two runs.

    Attributes
    ----------
    ratio : time after over time before.
    p_value : share of random orders of the runs that show a change at least as large.
    first, last : numbers of runs, from 0: a `step` is between the runs `first` - 1 and `first`, a `drift`
        from the run `first` to `last`.
    kind : kind of the change.
    """

    kind: ChangeKind
    first: Natural
    last: Natural
    ratio: Positive
    p_value: Share


@dataclass(frozen=True, eq=False)
class Series(Record):
    """The times of one point over all runs.

    Attributes
    ----------
    time_s : a number for each run, the median over launches; 0 if the run lacks the point.
    changes : changes of this point.
    """

    key_types: ClassVar[Mapping[str, Any]] = ANY_CONFIG_TYPES

    kernel: str
    quantity: str
    method: str
    config: dict[str, Scalar]
    time_s: np.ndarray
    changes: tuple[SeriesChange, ...] = ()


@dataclass(frozen=True)
class History(Record):
    """The runs in the order of their start, and every point that enough of them have.

    Attributes
    ----------
    level : share of histories without a change in which one is found.
    min_effect : minimum effect, as a fraction: a smaller change is ignored.
    differences : properties, other than times, in which a run differs from the run before it, by number of
        the run as text.
    runs : the runs in the order of their start.
    series : one Series for each point.
    """

    schema: ClassVar[str] = SCHEMA

    runs: tuple[HistoryRun, ...]
    level: Share
    min_effect: NotNegative
    series: tuple[Series, ...]
    differences: dict[str, tuple[Difference, ...]] = field(default_factory=dict)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(one.time_s.shape != (len(self.runs),) for one in self.series):
            raise ValueError("time_s of a series must hold one number for each of `runs`")
        for one in self.series:
            require_not_negative(one, "time_s")
        ends = [end for one in self.series for change in one.changes for end in (change.first, change.last)]
        if not self.runs or max(ends, default=0) >= len(self.runs):
            raise ValueError("first and last of a change must be numbers of `runs`, counted from 0")

    def changes(self) -> list[tuple[Series, SeriesChange]]:
        """Return every change with its point: the earliest change first, then the largest."""
        found = [(one, change) for one in self.series for change in one.changes]
        return sorted(found, key=lambda pair: (pair[1].first, -abs(pair[1].ratio - 1)))


def load_history(path: str | Path) -> History:
    """Read a history; raise InputError if the file is not one."""
    return history_from_json(files.read_json(path, "history", SCHEMA), f"the history {path}")


def history_from_json(value: Mapping[str, Any], where: str = "the history") -> History:
    history = decode(value, History, where, "make it again with `earlybird history --json`")
    for run in history.runs:
        check_date(run.started, f"{where}, the run {run.name}")
    return history
