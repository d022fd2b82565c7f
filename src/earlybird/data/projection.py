"""Projection: what changes of a recorded program or of its settings would save in each of its phases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data import labels
from earlybird.data.advice import MODEL
from earlybird.data.schema import (
    OMIT_EMPTY,
    Count,
    Estimate,
    Extra,
    Natural,
    NotNegative,
    Record,
    decode,
    require_one_of,
)
from earlybird.data.units import format_seconds

SCHEMA = "earlybird.projection/1"
# What a change is of.
LAYOUT, AGGREGATION, PARTITIONS, COLLECTIVE, OTHER_MPI, COMMUNICATORS = (
    "layout", "aggregation", "partitions", "collective", "mpi", "communicators",
)  # fmt: skip
KINDS = (LAYOUT, AGGREGATION, PARTITIONS, COLLECTIVE, OTHER_MPI, COMMUNICATORS)
# Of the run: what even work must save to be worth a sentence.
_UNEVEN = 0.05
# What changes all phases of a run.
OF_RUN = (LAYOUT, OTHER_MPI)


@dataclass(frozen=True)
class ProjectedChange(Record):
    """One change, and the time of a phase with it.

    Attributes
    ----------
    kind : one of KINDS.
    change : what is changed, such as "4x1x2".
    action : the setting or change of the program.
    time_s : of the phase in the whole run, projected, with a 95 % interval.
    speed_up : recorded time of the phase / `time_s`.
    run_speed_up : recorded time of the run / the same with this change alone.
    basis : as of an `Alternative`: EXTRAPOLATED outside the measured range.
    """

    kind: str
    change: str
    action: str
    time_s: Estimate
    speed_up: Estimate
    run_speed_up: Estimate
    basis: str = MODEL
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of("kind", self.kind, KINDS)


@dataclass(frozen=True)
class ProjectedPhase(Record):
    """A phase of the program, as recorded and as the models describe it.

    Attributes
    ----------
    number : in the recording, see `data.phases`.
    epochs : how often a rank goes through it.
    time_s : recorded, from the first to the last call of each epoch, summed over epochs; mean over ranks.
    mpi_s : the part of it inside MPI calls.
    model_s : what the models predict for the communication of all epochs: the slowest rank; None if they
        describe none of it.
    """

    number: Count
    calls: tuple[str, ...]
    functions: tuple[str, ...]
    epochs: Count
    time_s: NotNegative
    mpi_s: NotNegative
    model_s: NotNegative | None = None
    changes: tuple[ProjectedChange, ...] = ()
    notes: tuple[str, ...] = field(default=(), metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class WorkBalance(Record):
    """Time outside MPI calls: of the rank with the most of it, and the mean over ranks.

    `mean_s` / `most_s` is the load balance efficiency of the POP project.
    """

    rank: Natural
    most_s: NotNegative
    mean_s: NotNegative
    extra: Extra = field(default_factory=dict)

    def saved_s(self) -> float:
        """How much shorter the run would be if all ranks had the mean and waited for nothing else."""
        return self.most_s - self.mean_s

    def sentence(self, run_s: float) -> str:
        """What even work could save of the run, as a clause; "" if it is little."""
        if self.saved_s() <= _UNEVEN * run_s:
            return ""
        share = labels.percent(self.saved_s() / run_s)
        return (
            f"rank {self.rank} computes for {format_seconds(self.most_s)} and ranks on average for "
            f"{format_seconds(self.mean_s)}: with even work the run could be "
            f"{format_seconds(self.saved_s())} shorter, {share} of it"
        )


@dataclass(frozen=True)
class RunChange:
    """A change of all phases.

    Attributes
    ----------
    change : that of the first phase.
    phases : their numbers.
    run_speed_up : recorded time of the run / the same with this change in all of them.
    """

    change: ProjectedChange
    phases: tuple[int, ...]
    run_speed_up: Estimate


@dataclass(frozen=True)
class Projection(Record):
    """What was projected for the recording `recording` of `ranks` ranks that ran `run_s` seconds.

    `assumptions` are by kind of change; `balance` is None if nothing is known of it.
    """

    schema: ClassVar[str] = SCHEMA

    recording: str
    ranks: Count
    run_s: NotNegative
    layout: str
    profile_id: str = ""
    phases: tuple[ProjectedPhase, ...] = ()
    assumptions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    balance: WorkBalance | None = None
    extra: Extra = field(default_factory=dict)

    def uneven_work(self) -> str:
        """What even work could save, as a clause; "" if it is little or unknown."""
        return self.balance.sentence(self.run_s) if self.balance else ""

    def remarks(self) -> list[str]:
        """What to know of the whole: uneven work, and the notes of the run and of its phases."""
        uneven = self.uneven_work()
        of_phases = [f"phase {phase.number}: {note}" for phase in self.phases for note in phase.notes]
        return [*([uneven] if uneven else []), *self.notes, *of_phases]

    def run_changes(self) -> list[RunChange]:
        """The changes of kinds OF_RUN. What they save is summed over phases, and so are the bounds, because
        errors of one model agree."""
        found: dict[tuple[str, str], list[tuple[ProjectedPhase, ProjectedChange]]] = {}
        for phase in self.phases:
            for change in phase.changes:
                if change.kind in OF_RUN:
                    found.setdefault((change.kind, change.change), []).append((phase, change))
        return [self.together(pairs) for pairs in found.values()]

    def together(self, pairs: Sequence[tuple[ProjectedPhase, ProjectedChange]]) -> RunChange:
        """What the same change saves in several phases."""
        saved = [sum(phase.time_s - change.time_s[k] for phase, change in pairs) for k in range(3)]
        value, high, low = (self.run_s / max(self.run_s - one, 1e-12) for one in saved)
        numbers = tuple(sorted({phase.number for phase, _ in pairs}))
        return RunChange(pairs[0][1], numbers, Estimate(value, min(low, value), max(high, value)))


def projection_from_json(value: Mapping[str, Any], where: str = "the projection") -> Projection:
    """Build a Projection from its JSON object; raises InputError when a part is missing."""
    return decode(value, Projection, where, "make it again with `earlybird project --json`")
