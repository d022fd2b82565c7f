"""Projection: the savings of changes of a recorded program or of its settings in each of its phases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from earlybird.data import labels
from earlybird.data.advice import MODEL
from earlybird.data.exchange_models import with_reason
from earlybird.data.schema import (
    OMIT_EMPTY,
    Count,
    Estimate,
    Extra,
    NotNegative,
    Positive,
    Rank,
    Ranks,
    Record,
    Share,
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
# A speed-up is unknown if its interval contains a slow-down and a speed-up of more than this, or if it
# contains 1 and its upper end is more than MAX_SPREAD times the lower one. So wide an interval beyond 1 is a
# bound.
CLEAR_SPEED_UP = 1.2
MAX_SPREAD = 3.0


def is_unknown(speed_up: Estimate) -> bool:
    """Return whether the interval of a speed-up gives no information."""
    _, low, high = speed_up
    if low > 1 or high < 1:
        return False
    return (low < 1 / CLEAR_SPEED_UP and high > CLEAR_SPEED_UP) or high > MAX_SPREAD * low


def is_bound(speed_up: Estimate) -> bool:
    """Return whether only the end of the interval of a speed-up that is nearer to 1 is known."""
    return not is_unknown(speed_up) and speed_up.high > MAX_SPREAD * speed_up.low


def has_interval(speed_up: Estimate | None) -> bool:
    """Return whether both ends of the interval of a speed-up are known."""
    return speed_up is not None and not is_unknown(speed_up) and not is_bound(speed_up)


def speed_up_text(speed_up: Estimate | None, ratio: Callable[[float], str] = "{:.2f}".format) -> str:
    """Return `1.22`, `at least 1.07` or `unknown`; `ratio` formats a number."""
    if speed_up is None or is_unknown(speed_up):  # the latter in files of earlier versions
        return "unknown"
    if not is_bound(speed_up):
        return ratio(speed_up.value)
    return f"at least {ratio(speed_up.low)}" if speed_up.low > 1 else f"at most {ratio(speed_up.high)}"


def time_text(time_s: Estimate | None, speed_up: Estimate | None) -> str:
    """Return the projected time in the same way: `812 ms`, `at most 890 ms` or ``."""
    if time_s is None or speed_up is None or is_unknown(speed_up):
        return ""
    if not is_bound(speed_up):
        return format_seconds(time_s.value)
    if speed_up.low > 1:
        return f"at most {format_seconds(time_s.high)}"
    return f"at least {format_seconds(time_s.low)}"


@dataclass(frozen=True)
class ProjectedChange(Record):
    """A change, and the time of a phase with it.

    Attributes
    ----------
    change : the changed setting, such as "4x1x2".
    action : the setting or change of the program.
    time_s : projected time of the phase in the whole run, with a 95 % interval; None if unknown.
    speed_up : recorded time of the phase / `time_s`; None if unknown, see `is_unknown`.
    run_speed_up : recorded time of the run / the same with this change alone; None if unknown.
    basis : basis as in an `Alternative`: EXTRAPOLATED outside the measured range.
    reason : the reason why a speed-up is unknown or only a bound, see `is_bound`.
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
class WorkBalance(Record):
    """The time outside MPI calls of the rank that has most of it, and its mean over ranks.

    `mean_s` / `most_s` is the load balance efficiency of the POP project, where no rank waited for a core.

    Attributes
    ----------
    core_wait_share : share of the run in which ranks waited for cores, if they did: a part of these times may
        then be waiting.
    least_saved_s, most_saved_s : bounds of the time that balanced work saves; None if unknown, and if no rank
        waited for a core: it is `most_s` - `mean_s` then.
    rank : the rank with most time outside MPI calls.
    most_s, mean_s : time of that rank, and mean of all ranks.
    """

    rank: Rank
    most_s: NotNegative
    mean_s: NotNegative
    core_wait_share: Share = field(default=0.0, metadata=OMIT_EMPTY)
    least_saved_s: NotNegative | None = None
    most_saved_s: NotNegative | None = None
    extra: Extra = field(default_factory=dict)

    def saved_s(self) -> tuple[float, float] | None:
        """Return by how much the run would be shorter if all ranks had the mean and waited for nothing else:
        the lower and the upper bound; None if unknown."""
        if not self.core_wait_share:
            return self.most_s - self.mean_s, self.most_s - self.mean_s
        if self.least_saved_s is None or self.most_saved_s is None:
            return None
        return self.least_saved_s, self.most_saved_s

    def is_uneven(self, run_s: float) -> bool:
        """Return whether the imbalance is large enough to be reported."""
        saved_s = self.saved_s()
        # Without a core nobody computes.
        worth_s = _UNEVEN * (run_s if saved_s else run_s * (1 - self.core_wait_share))
        return (saved_s[1] if saved_s else self.most_s - self.mean_s) > worth_s

    def sentence(self, run_s: float) -> str:
        """Return the time of the run that balanced work could save, as a clause; "" if it is small."""
        if not self.is_uneven(run_s):
            return ""
        most, mean = format_seconds(self.most_s), format_seconds(self.mean_s)
        saved_s = self.saved_s()
        if saved_s is None:
            return (
                f"rank {self.rank} is outside the MPI for {most} and ranks on average for {mean}; how much "
                "of that is computation, and what even work would save, is not known, since ranks waited for "
                f"a core in {labels.percent(self.core_wait_share)} of the run"
            )
        least_s, most_s = saved_s
        span = format_seconds(most_s)
        share = labels.percent(most_s / run_s)
        if format_seconds(least_s) != span:
            span = f"{format_seconds(least_s)} to {span}"
            share = f"{labels.percent(least_s / run_s)} to {share}"
        return (
            f"rank {self.rank} computes for {most} and ranks on average for {mean}: with even work the run "
            f"could be {span} shorter, {share} of it"
        )

    def remedy(self, run_s: float) -> str:
        """Return the remedy for the imbalance, to go with `sentence`; "" if it is small."""
        sentence = self.sentence(run_s)
        if not sentence:
            return ""
        whose = "the work evenly" if self.saved_s() else f"the work of rank {self.rank}"
        return f"distribute {whose}: {sentence}"


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
    return decode(value, Projection, where, "make it again with `earlybird project --json`")
