"""GuidelineChecks: whether an MPI's collectives are as fast as what they can be replaced by."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from earlybird.data import files
from earlybird.data.schema import (
    Bytes,
    Count,
    Estimate,
    Extra,
    NotNegative,
    Positive,
    Ranks,
    Record,
    Share,
    decode,
)
from earlybird.data.units import format_bytes

SCHEMA = "earlybird.guidelines/1"

VIOLATED: Final = "violated"
HOLDS: Final = "holds"
UNDECIDED: Final = "inconclusive"
OUTCOMES = (VIOLATED, UNDECIDED, HOLDS)
Outcome = Literal["violated", "holds", "inconclusive"]
COMPOSITION: Final = "composition"
MONOTONY: Final = "monotony"
SPLIT: Final = "split"
Kind = Literal["composition", "monotony", "split"]


@dataclass(frozen=True)
class Replacement(Record):
    """One operation of a replacement.

    Attributes
    ----------
    calls : how often it is called, one after the other.
    """

    operation: str
    size_bytes: Bytes
    calls: Count = 1


@dataclass(frozen=True)
class GuidelineCheck(Record):
    """One guideline at one size: `operation` should take at most the time of its `replacement`.

    Attributes
    ----------
    size_bytes : as `measure collective` means it: of the block of two ranks for allgather, alltoall, gather
        and scatter, else of the buffer.
    time_s, bound_s : medians over launches, of the operation and of its replacement.
    ratio : the first over the second, with its interval: above 1 if the operation is slower.
    p_value, adjusted_p_value : as in a comparison of runs; None with too few launches.
    launches, bound_launches : the number of each.
    kind : of the guideline.
    replacement : the operations that do the same one after the other.
    outcome : of the ratio and its interval.
    remedy : what to do about a violation.
    """

    kind: Kind
    operation: str
    size_bytes: Bytes
    ranks: Ranks
    layout: str
    map_by: str
    replacement: tuple[Replacement, ...]
    time_s: Positive
    bound_s: Positive
    ratio: Estimate
    p_value: Share | None
    adjusted_p_value: Share | None
    launches: Ranks
    bound_launches: Ranks
    outcome: Outcome
    remedy: str = ""

    def subject(self) -> str:
        """`allgather(1 KiB)`."""
        return _call(self.operation, self.size_bytes)

    def text(self) -> str:
        """`allgather(1 KiB) <= gather(1 KiB) + bcast(4 KiB)`."""
        parts = [
            f"{one.calls} x " * (one.calls > 1) + _call(one.operation, one.size_bytes)
            for one in self.replacement
        ]
        return f"{self.subject()} <= {' + '.join(parts)}"

    def rule(self) -> str:
        """The same for all sizes: `allgather <= gather + bcast`, or `monotony of bcast`."""
        if self.kind != COMPOSITION:
            return f"{self.kind} of {self.operation}"
        return f"{self.operation} <= {' + '.join(one.operation for one in self.replacement)}"

    def row(self) -> dict[str, Any]:
        """One flat row, for CSV."""
        value = self.to_json()
        del value["replacement"]  # the text has it
        return {"guideline": self.text()} | value


def _call(operation: str, size_bytes: int) -> str:
    return f"{operation}({format_bytes(size_bytes)})" if size_bytes else operation


@dataclass(frozen=True)
class UncheckedSizes(Record):
    """Sizes at which a guideline could not be checked, and why.

    Attributes
    ----------
    rule : the guideline, as `GuidelineCheck.rule`.
    sizes_bytes : sizes that lack what the guideline needs.
    reason : what is missing.
    """

    rule: str
    ranks: Ranks
    layout: str
    map_by: str
    sizes_bytes: tuple[Bytes, ...]
    reason: str

    def text(self) -> str:
        """`allgather <= gather + bcast on 4 ranks at 1 MiB (needs bcast of 4 MiB)`."""
        sizes = ", ".join(map(format_bytes, self.sizes_bytes))
        return f"{self.rule} on {self.ranks} ranks at {sizes} ({self.reason})"


@dataclass(frozen=True)
class GuidelineChecks(Record):
    """All checks of one MPI in one run.

    Attributes
    ----------
    level : share of false discoveries among the checks that are called violated.
    min_effect : a smaller violation counts as none, as a fraction.
    unchecked : guidelines of operations that were not measured, as text.
    unchecked_sizes : of other guidelines, the sizes that lack what they need.
    run : its name.
    checks : one for each guideline and size.
    """

    schema: ClassVar[str] = SCHEMA

    run: str
    mpi: str
    level: Share
    min_effect: NotNegative
    checks: tuple[GuidelineCheck, ...]
    unchecked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unchecked_sizes: tuple[UncheckedSizes, ...] = ()
    extra: Extra = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        return sum(check.outcome == outcome for check in self.checks)

    def worst_first(self, *outcomes: str) -> list[GuidelineCheck]:
        """Return the checks with one of `outcomes`, by default all: the violated ones first, then the
        inconclusive, each the longest first."""
        checks = [check for check in self.checks if check.outcome in (outcomes or OUTCOMES)]
        return sorted(checks, key=lambda check: (OUTCOMES.index(check.outcome), -check.ratio.value))

    def not_checked(self) -> list[str]:
        """What could not be checked, with the reason."""
        return [*self.unchecked, *(one.text() for one in self.unchecked_sizes)]


def load_guidelines(path: str | Path) -> GuidelineChecks:
    """Raises InputError for a file that has none."""
    return guidelines_from_json(files.read_json(path, "guidelines", SCHEMA), f"the guidelines {path}")


def guidelines_from_json(value: Any, where: str = "the guidelines") -> GuidelineChecks:
    return decode(value, GuidelineChecks, where, "make them again with `earlybird compare --guidelines`")
