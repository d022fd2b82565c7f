"""A projection with its title, and the changes of all phases by what they save."""

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
from earlybird.data.units import format_seconds
from earlybird.present.material import Material

# What a change is called with its name; the names of others say it by themselves.
_KINDS = {LAYOUT: "the layout", OTHER_MPI: "the MPI"}


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
    file : the name of its file; "" if the name of the recording distinguishes it from others.
    is_only : whether there is no other one next to it.
    """

    record: Projection
    file: str = ""
    is_only: bool = True

    @property
    def title(self) -> str:
        """`Program recorded in rec, 4 ranks`."""
        ranks = labels.counted(self.record.ranks, "rank")
        file = f", {self.file}" if self.file else ""
        return f"Program recorded in {self.record.recording}, {ranks}{file}"

    def named(self, caption: str) -> str:
        """Return the caption of a table, with the title if there are several projections."""
        return caption if self.is_only else f"{caption}: {self.title}"

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


def projected(material: Material) -> list[Projected]:
    """Return the projections in the order given; those of recordings with one name with their files."""
    names = [projection.recording for projection in material.projections]
    return [
        Projected(
            projection,
            material.name_of("projections", k) or str(k + 1) if names.count(projection.recording) > 1 else "",
            len(names) == 1,
        )
        for k, projection in enumerate(material.projections)
    ]


def _name(change: ProjectedChange | RunChange) -> str:
    """Return `the layout 4x1x2` or `176 to 8 messages`."""
    return f"{_KINDS.get(change.kind, '')} {change.change}".lstrip()
