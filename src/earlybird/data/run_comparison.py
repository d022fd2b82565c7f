"""RunComparison: the changes between two measurements of the same points, and other differences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from earlybird.data import files
from earlybird.data.run import Scalar
from earlybird.data.run_keys import ANY_CONFIG_TYPES
from earlybird.data.schema import (
    Estimate,
    Extra,
    NotNegative,
    Positive,
    Ranks,
    Record,
    Share,
    decode,
)
from earlybird.data.statistics import MEDIAN, Statistic

SCHEMA = "earlybird.run-comparison/1"

SLOWER: Final = "slower"
FASTER: Final = "faster"
SAME: Final = "same"
INCONCLUSIVE: Final = "inconclusive"
VERDICTS = (SLOWER, FASTER, SAME, INCONCLUSIVE)
_MAX_CHARACTERS = 100  # of a text that differs
Verdict = Literal["slower", "faster", "same", "inconclusive"]


@dataclass(frozen=True)
class Change(Record):
    """The times of one point on both sides.

    Attributes
    ----------
    method : the method; "" if the kernel has only one.
    config : the other values that identify the point; the MPI is not part of it.
    before_s, after_s : medians over launches.
    ratio : time after over time before, with its interval: above 1 if slower.
    p_value, adjusted_p_value : p-value of the Mann-Whitney U test on the medians of launches, and the value
        adjusted for the number of points; None with too few launches.
    launches_before, launches_after : number of launches of each side.
    statistic : the statistic over the iterations of a launch that represents it; None if the sides have
        different ones.
    verdict : verdict on the ratio and its interval.
    """

    key_types: ClassVar[Mapping[str, Any]] = ANY_CONFIG_TYPES

    kernel: str
    quantity: str
    method: str
    config: dict[str, Scalar]
    before_s: Positive
    after_s: Positive
    ratio: Estimate
    p_value: Share | None
    adjusted_p_value: Share | None
    launches_before: Ranks
    launches_after: Ranks
    verdict: Verdict
    statistic: Statistic | None = MEDIAN

    @property
    def distance(self) -> float:
        """The size of the change as a factor: the ratio or its reciprocal, whichever is above 1; infinite for
        a time that became 0."""
        ratio = self.ratio.value
        return max(ratio, 1 / ratio) if ratio > 0 else math.inf

    def row(self) -> dict[str, Any]:
        """Return the change as one flat row, for CSV."""
        value = self.to_json()
        config = value.pop("config")
        return {key: value.pop(key) for key in ("kernel", "quantity", "method")} | dict(config) | value


@dataclass(frozen=True)
class Point(Record):
    """A point that only one side has."""

    key_types: ClassVar[Mapping[str, Any]] = ANY_CONFIG_TYPES

    kernel: str
    quantity: str
    method: str
    config: dict[str, Scalar]


@dataclass(frozen=True)
class Difference(Record):
    """A difference between the sides other than times.

    Attributes
    ----------
    what : name of the property that differs.
    before, after : the two values as text, "" if absent.
    prevents_comparison : whether times differ for this reason alone: host, network or placement.
    """

    what: str
    before: str
    after: str
    prevents_comparison: bool = False

    def shortened(self) -> tuple[str, str]:
        """Return both texts for people; for long texts, the part in which they differ."""
        pairs = enumerate(zip(self.before, self.after, strict=False))
        alike = next((k for k, (one, other) in pairs if one != other), 0)
        start = max(alike - _MAX_CHARACTERS // 2, 0)
        return _part(self.before, start), _part(self.after, start)


def _part(text: str, start: int) -> str:
    if len(text) <= _MAX_CHARACTERS:
        return text or "(none)"
    end = start + _MAX_CHARACTERS
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


@dataclass(frozen=True)
class RunComparison(Record):
    """The changes between two runs.

    Attributes
    ----------
    level : share of false discoveries among the points that are called changed.
    min_effect : minimum effect, as a fraction: a smaller change is ignored.
    geometric_mean : geometric mean of the ratios.
    only_before, only_after : points that one side lacks.
    before, after : names of the two sides.
    changes : one for each point of both sides.
    differences : differences other than times.
    notes : warnings.
    """

    schema: ClassVar[str] = SCHEMA

    before: str
    after: str
    level: Share
    min_effect: NotNegative
    geometric_mean: Positive
    changes: tuple[Change, ...]
    only_before: tuple[Point, ...] = ()
    only_after: tuple[Point, ...] = ()
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)

    def count(self, verdict: str) -> int:
        return sum(change.verdict == verdict for change in self.changes)

    def slower_first(self) -> list[Change]:
        """Return the slower points, then the inconclusive, the faster and the same ones, each group with the
        largest change first."""
        order = (SLOWER, INCONCLUSIVE, FASTER, SAME)
        return sorted(self.changes, key=lambda change: (order.index(change.verdict), -change.distance))


def load_run_comparison(path: str | Path) -> RunComparison:
    """Read a comparison of runs; raise InputError if the file is not one."""
    return run_comparison_from_json(
        files.read_json(path, "comparison of runs", SCHEMA), f"the comparison {path}"
    )


def run_comparison_from_json(value: Mapping[str, Any], where: str = "the comparison") -> RunComparison:
    return decode(value, RunComparison, where, "make it again with `earlybird compare --json`")
