"""Prints projections, files of earlier versions: the phases of a program, and the time of each with every
change."""

from collections.abc import Sequence
from dataclasses import dataclass

from earlybird.compare.ranking import is_clearly_faster
from earlybird.data import labels
from earlybird.data.projection import (
    LAYOUT,
    OF_RUN,
    OTHER_MPI,
    ProjectedChange,
    ProjectedPhase,
    Projection,
    RunChange,
)
from earlybird.data.schema import Estimate
from earlybird.data.speed_ups import has_interval, is_bound, speed_up_text, time_text
from earlybird.data.units import format_seconds
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import Format, print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_captioned, print_line
from earlybird.present.subjects.recording.view import first_names

# What a change is called with its name; the names of others say it by themselves.
_KINDS = {LAYOUT: "the layout", OTHER_MPI: "the MPI"}
_CSV = ("phase", "kind", "change", "recorded_s", "time_s", "time_low_s", "time_high_s", "speed_up",
        "speed_up_low", "speed_up_high", "run_speed_up", "run_speed_up_low", "run_speed_up_high",
        "action", "reason")  # fmt: skip

_PHASES = (
    Column("phase", lambda phase: phase.number),
    Column("calls", lambda phase: first_names(phase.calls), left=True, folded=True),
    Column("in", lambda phase: first_names(phase.functions), left=True, folded=True),
    Column("epochs", lambda phase: phase.epochs),
    Column("time", lambda phase: format_seconds(phase.time_s)),
    Column("in MPI", lambda phase: format_seconds(phase.mpi_s)),
    Column("predicted", lambda phase: "" if phase.model_s is None else format_seconds(phase.model_s)),
)
_CHANGES = (
    Column("phase", lambda gain: gain.phase.number),
    Column("change", lambda gain: gain.name, left=True, folded=True),
    Column("recorded", lambda gain: format_seconds(gain.phase.time_s)),
    Column("projected", lambda gain: time_text(gain.change.time_s, gain.change.speed_up)),
    Column("95 %", lambda gain: _time_interval(gain), detail=True),
    Column("speed-up (95 %)", lambda gain: _speed_up_cell(gain.change.speed_up)),
    Column("of the run (95 %)", lambda gain: _speed_up_cell(gain.change.run_speed_up)),
    Column("basis", lambda gain: gain.change.basis),
    Column("what to do", lambda gain: gain.change.action, detail=True),
    Column("remark", lambda gain: gain.change.reason, detail=True, optional=True),
)


@dataclass(frozen=True)
class Gain:
    """A change, and the phase to which it applies."""

    phase: ProjectedPhase
    change: ProjectedChange

    @property
    def name(self) -> str:
        return _name(self.change)

    @property
    def where(self) -> str:
        """The phase with its functions, such as `phase 1 in sendReceiveParallel`; with the calls if no
        function is known."""
        functions = self.phase.functions or self.phase.calls
        return f"phase {self.phase.number}" + (f" in {labels.listed_briefly(functions)}" if functions else "")


@dataclass(frozen=True)
class Best:
    """The change that saves most of a run, and the phases that it changes."""

    name: str
    where: str
    action: str
    run_speed_up: Estimate


@dataclass(frozen=True)
class Projected:
    """A projection.

    Attributes
    ----------
    record : the projection, unchanged from the file.
    """

    record: Projection

    @property
    def run_text(self) -> str:
        """`recording rec: 4 ranks on 2x1x2, 2 s`."""
        ranks = labels.counted(self.record.ranks, "rank")
        run = f"{ranks} on {self.record.layout}, {format_seconds(self.record.run_s)}"
        return f"recording {self.record.recording}: {run}"

    @property
    def gains(self) -> Sequence[Gain]:
        """The changes of each phase, that which saves most of the run first."""
        gains = [Gain(phase, change) for phase in self.record.phases for change in phase.changes]
        return sorted(gains, key=lambda gain: -(gain.change.run_speed_up or Estimate.exact(0.0)).value)

    @property
    def best(self) -> Best | None:
        """The change that makes the run clearly faster, by most; a layout and an MPI change all phases."""
        changes = [
            Best(gain.name, gain.where, gain.change.action, gain.change.run_speed_up)
            for gain in self.gains
            if gain.change.kind not in OF_RUN and gain.change.run_speed_up is not None
        ]
        for change in self.record.run_changes():
            phases = "phase" if len(change.phases) == 1 else "phases"
            where = f"{phases} {labels.listed([str(number) for number in change.phases])}"
            if change.run_speed_up is not None:
                changes.append(Best(_name(change), where, change.action, change.run_speed_up))
        clear = [best for best in changes if is_clearly_faster(best.run_speed_up, Estimate.exact(1.0))]
        return max(clear, key=lambda best: best.run_speed_up.value, default=None)


def print_projection(projection: Projection, format: str | Format) -> None:
    """Print a projection; as CSV, the changes."""
    for remark in projection.remarks():
        note(f"warning: {remark}")
    records = [
        {"phase": phase.number, "recorded_s": phase.time_s} | change.to_json()
        for phase in projection.phases
        for change in phase.changes
    ]
    if print_data(format, projection.to_json(), records, _CSV):
        return
    projected = Projected(projection)
    print_line(projected.run_text)
    print_line(f"{labels.capital(_verdict(projected))}.")
    mean = ", times are means over ranks" if projection.ranks > 1 else ""
    print_captioned(Table(f"Phases{mean}", _PHASES, projection.phases, wide=True))
    if projected.gains:
        caption = (
            "Changes, by the time of the run that each saves; speed-up: recorded time / projected time, of "
            "the phase and of the run"
        )
        print_captioned(Table(caption, _CHANGES, projected.gains, wide=True))
    print_line()
    for gain in projected.gains:
        if gain.change.reason:
            print_line(f"Phase {gain.phase.number}, {gain.name}: {gain.change.reason}.")
    for sentence in _basis(projected):
        print_line(sentence)


def _verdict(projected: Projected) -> str:
    """Return the gain of the best change, as a clause."""
    best = projected.best
    if best is None:
        return "no change is clearly faster" if projected.gains else "there is no change to project"
    interval = interval_text(best.run_speed_up, ratio_text)
    certain = "" if is_bound(best.run_speed_up) else f" (95 %: {interval})"
    return (
        f"with {best.name} instead of what was recorded, the run is projected to be "
        f"{speed_up_text(best.run_speed_up, ratio_text)} times as fast{certain}, by {best.where}"
    )


def _basis(projected: Projected) -> list[str]:
    """Return the models of the phases and the assumptions, a sentence each."""
    models = [f"Model of exchanges: {name}." for name in projected.record.models()]
    return models + [
        labels.capital(f"{kind}: assumes that {text}.") for kind, text in projected.record.assumptions.items()
    ]


def _speed_up_cell(speed_up: Estimate | None) -> str:
    """Return `1.22 (1.13 .. 1.29)`, `at least 1.07` or `unknown`."""
    interval = interval_text(speed_up, ratio_text) if has_interval(speed_up) else ""
    return speed_up_text(speed_up, ratio_text) + (f" ({interval})" if interval else "")


def _time_interval(gain: Gain) -> str:
    return interval_text(gain.change.time_s, format_seconds) if has_interval(gain.change.speed_up) else ""


def _name(change: ProjectedChange | RunChange) -> str:
    """Return `the layout 4x1x2` or `176 to 8 messages`."""
    return f"{_KINDS.get(change.kind, '')} {change.change}".lstrip()
