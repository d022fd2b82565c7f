"""Projections: files of earlier versions on what changes of a recorded program would save, by phase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data.advice import MODEL
from earlybird.data.exchange_models import with_reason
from earlybird.data.schema import (
    OMIT_EMPTY,
    Count,
    Estimate,
    Extra,
    NotNegative,
    Positive,
    Ranks,
    Record,
    decode,
    require_one_of,
)
from earlybird.data.work_balance import WorkBalance

SCHEMA = "earlybird.projection/1"
# What a change is of.
LAYOUT, AGGREGATION, PARTITIONS, COLLECTIVE, OTHER_MPI, COMMUNICATORS = (
    "layout", "aggregation", "partitions", "collective", "mpi", "communicators",
)  # fmt: skip
KINDS = (LAYOUT, AGGREGATION, PARTITIONS, COLLECTIVE, OTHER_MPI, COMMUNICATORS)
# What changes all phases of a run.
OF_RUN = (LAYOUT, OTHER_MPI)


@dataclass(frozen=True)
class ProjectedChange(Record):
    """A change, and the time of a phase with it.

    Attributes
    ----------
    change : the changed setting, such as "4x1x2".
    action : the setting or change of the program.
    time_s : projected time of the phase in the whole run, with a 95 % interval; None if unknown.
    speed_up : recorded time of the phase / `time_s`; None if unknown, see `speed_ups.is_unknown`.
    run_speed_up : recorded time of the run / the same with this change alone; None if unknown.
    basis : basis as in an `Alternative`: EXTRAPOLATED outside the measured range.
    reason : the reason why a speed-up is unknown or only a bound, see `speed_ups.is_bound`.
    kind : `layout`, `aggregation`, `partitions`, `collective`, `mpi` or `communicators`.
    """

    kind: str
    change: str
    action: str
    time_s: Estimate | None
    speed_up: Estimate | None
    run_speed_up: Estimate | None
    basis: str = MODEL
    reason: str = field(default="", metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of("kind", self.kind, KINDS)


@dataclass(frozen=True)
class ProjectedPhase(Record):
    """A phase of the program, as recorded and as the models describe it.

    Attributes
    ----------
    number : number in the recording, see `data.phases`.
    epochs : number of epochs of a rank.
    time_s : recorded time, from the first to the last call of each epoch, summed over epochs; mean over
        ranks.
    mpi_s : the part of it inside MPI calls.
    model_s : the time that the models predict for the communication of all epochs: of the slowest rank; None
        if they describe none of it.
    model, model_reason : the model of its exchanges, and the reason for its choice; "" without a prediction
        of them.
    calls, functions : MPI calls, and the functions of the program that make them.
    changes : one ProjectedChange for each change of the phase.
    notes : remarks, a sentence each.
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
    model: str = field(default="", metadata=OMIT_EMPTY)
    model_reason: str = field(default="", metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)


@dataclass(frozen=True)
class RunChange(Record):
    """A change of all phases.

    Attributes
    ----------
    kind, change, action, reason : values as in a `ProjectedChange`.
    phases : numbers of the phases.
    run_speed_up : recorded time of the run / the same with this change in all of them; None if unknown.
    """

    kind: str
    change: str
    action: str
    phases: tuple[Count, ...]
    run_speed_up: Estimate | None
    reason: str = field(default="", metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_one_of("kind", self.kind, KINDS)


@dataclass(frozen=True)
class Projection(Record):
    """The projections for the recording `recording` of `ranks` ranks that ran `run_s` seconds.

    Attributes
    ----------
    assumptions : assumptions by kind of change.
    causes : causes of time that are none of the changes, as clauses that say what to do.
    is_cut : whether some rank was not recorded to its end.
    recording : folder of the recording.
    run_s : duration of the recorded run.
    phases : phases, the longest time first.
    balance : balance of time outside MPI calls; absent if it is unknown.
    changes_of_run : the changes of all phases; absent in files of earlier versions.
    """

    schema: ClassVar[str] = SCHEMA

    recording: str
    ranks: Ranks
    run_s: Positive
    layout: str
    profile_id: str = ""
    phases: tuple[ProjectedPhase, ...] = ()
    assumptions: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    balance: WorkBalance | None = None
    causes: tuple[str, ...] = field(default=(), metadata=OMIT_EMPTY)
    changes_of_run: tuple[RunChange, ...] | None = None
    is_cut: bool = field(default=False, metadata=OMIT_EMPTY)
    extra: Extra = field(default_factory=dict)

    def uneven_work(self) -> str:
        """Return the time that balanced work could save, as a clause; "" if it is small or unknown."""
        return self.balance.sentence(self.run_s) if self.balance else ""

    def uneven_work_remedy(self) -> str:
        """Return the remedy for uneven work, as a clause; "" if the effect is small or unknown."""
        return self.balance.remedy(self.run_s) if self.balance else ""

    def remarks(self) -> list[str]:
        """Return the remarks on the whole run: uneven work, and the notes of the run and of its phases."""
        uneven = self.uneven_work()
        of_phases = [f"phase {phase.number}: {note}" for phase in self.phases for note in phase.notes]
        return [*([uneven] if uneven else []), *self.notes, *of_phases]

    def models(self) -> list[str]:
        """Return the models of exchanges, each with why it was chosen and the phases that it describes."""
        phases: dict[str, list[str]] = {}
        for phase in self.phases:
            if phase.model:
                name = with_reason(phase.model, vars(phase))
                phases.setdefault(name, []).append(str(phase.number))
        return [f"{name}, phase {', '.join(numbers)}" for name, numbers in phases.items()]

    def run_changes(self) -> Sequence[RunChange]:
        """Return the changes of kinds OF_RUN. Their savings are summed over phases, and so are the bounds,
        because errors of one model agree."""
        if self.changes_of_run is not None:
            return self.changes_of_run
        alike: dict[tuple[str, str], list[tuple[ProjectedPhase, ProjectedChange]]] = {}
        for phase in self.phases:
            for change in phase.changes:
                if change.kind in OF_RUN:
                    alike.setdefault((change.kind, change.change), []).append((phase, change))
        return [self.together(pairs) for pairs in alike.values()]

    def together(self, pairs: Sequence[tuple[ProjectedPhase, ProjectedChange]]) -> RunChange:
        """Return the saving of the same change in several phases: unknown if it is unknown in one of them."""
        first = pairs[0][1]
        numbers = tuple(sorted({phase.number for phase, _ in pairs}))
        times_s = [change.time_s for _, change in pairs]
        known_s = [time_s for time_s in times_s if time_s is not None]
        if len(known_s) < len(times_s):
            reason = next((change.reason for _, change in pairs if change.reason), "")
            return RunChange(first.kind, first.change, first.action, numbers, None, reason)
        recorded_s = sum(phase.time_s for phase, _ in pairs)
        saved = [recorded_s - sum(time_s[k] for time_s in known_s) for k in range(3)]
        value, high, low = (self.run_s / max(self.run_s - one, 1e-12) for one in saved)
        speed_up = Estimate(value, min(low, value), max(high, value))
        return RunChange(first.kind, first.change, first.action, numbers, speed_up)


def projection_from_json(value: Mapping[str, Any], where: str = "the projection") -> Projection:
    """Build a Projection from its JSON object; raise InputError if a part is missing."""
    return decode(value, Projection, where, "simulate the program with `earlybird predict program`")
