"""GuidelineChecks: checks that an MPI's collectives are as fast as the operations that can replace them."""

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
    """An operation of a replacement.

    Attributes
    ----------
    calls : number of calls, one after the other.
    """

    operation: str
    size_bytes: Bytes
    calls: Count = 1


@dataclass(frozen=True)
class GuidelineCheck(Record):
    """A guideline at one size: `operation` should take at most the time of its `replacement`.

    Attributes
    ----------
    size_bytes : size as `measure collective` defines it: of the block of two ranks for allgather, alltoall,
        gather and scatter, else of the buffer.
    time_s, bound_s : medians over launches, for the operation and for its replacement.
    ratio : `time_s` over `bound_s`, with its interval: above 1 if the operation is slower.
    p_value, adjusted_p_value : p-values as in a comparison of runs; None with too few launches.
    launches, bound_launches : number of launches of each.
    kind : kind of the guideline.
    replacement : the operations that have the same effect if called one after the other.
    outcome : verdict on the ratio and its interval.
    remedy : the remedy for a violation.
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
        """Return the operation and its size: `allgather(1 KiB)`."""
        return _call(self.operation, self.size_bytes)

    def text(self) -> str:
        """Return the guideline with sizes: `allgather(1 KiB) <= gather(1 KiB) + bcast(4 KiB)`."""
        parts = [
            f"{one.calls} x " * (one.calls > 1) + _call(one.operation, one.size_bytes)
            for one in self.replacement
        ]
        return f"{self.subject()} <= {' + '.join(parts)}"

    def rule(self) -> str:
        """Return the guideline without sizes: `allgather <= gather + bcast`, or `monotony of bcast`."""
        if self.kind != COMPOSITION:
            return f"{self.kind} of {self.operation}"
        return f"{self.operation} <= {' + '.join(one.operation for one in self.replacement)}"

    def row(self) -> dict[str, Any]:
        """Return the check as one flat row, for CSV."""
        value = self.to_json()
        del value["replacement"]  # the text has it
        return {"guideline": self.text()} | value


def _call(operation: str, size_bytes: int) -> str:
    return f"{operation}({format_bytes(size_bytes)})" if size_bytes else operation


@dataclass(frozen=True)
class UncheckedSizes(Record):
    """The sizes at which a guideline could not be checked, with the reason.

    Attributes
    ----------
    rule : the guideline, as `GuidelineCheck.rule`.
    sizes_bytes : sizes at which a measurement that the guideline needs is missing.
    reason : the missing measurement.
    """

    rule: str
    ranks: Ranks
    layout: str
    map_by: str
    sizes_bytes: tuple[Bytes, ...]
    reason: str

    def text(self) -> str:
        """Return the sizes as text: `allgather <= gather + bcast on 4 ranks at 1 MiB (needs bcast of 4
        MiB)`."""
        sizes = ", ".join(map(format_bytes, self.sizes_bytes))
        return f"{self.rule} on {self.ranks} ranks at {sizes} ({self.reason})"


@dataclass(frozen=True)
class GuidelineChecks(Record):
    """All guideline checks of one MPI in one run.

    Attributes
    ----------
    level : share of false discoveries among the checks that are called violated.
    min_effect : minimum effect, as a fraction: a smaller violation is ignored.
    unchecked : guidelines of operations that were not measured, as text.
    unchecked_sizes : for other guidelines, the sizes at which a measurement that they need is missing.
    run : name of the run.
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
        inconclusive ones, each group by falling ratio."""
        checks = [check for check in self.checks if check.outcome in (outcomes or OUTCOMES)]
        return sorted(checks, key=lambda check: (OUTCOMES.index(check.outcome), -check.ratio.value))

    def not_checked(self) -> list[str]:
        """Return the guidelines and sizes that could not be checked, with the reason."""
        return [*self.unchecked, *(one.text() for one in self.unchecked_sizes)]


def load_guidelines(path: str | Path) -> GuidelineChecks:
    """Read guideline checks; raise InputError if the file has none."""
    return guidelines_from_json(files.read_json(path, "guidelines", SCHEMA), f"the guidelines {path}")


def guidelines_from_json(value: Any, where: str = "the guidelines") -> GuidelineChecks:
    return decode(value, GuidelineChecks, where, "make them again with `earlybird compare --guidelines`")
