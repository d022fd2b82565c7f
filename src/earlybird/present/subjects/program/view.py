"""The projections of a report: their titles, and the changes of all phases by what they save."""

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
from earlybird.present.material import Material
from earlybird.present.subjects.advice.view import BASES

# What a change is called with its name; the names of others say it by themselves.
_KINDS = {LAYOUT: "the layout", OTHER_MPI: "the MPI"}


@dataclass(frozen=True)
class Gain:
    """A change, and the phase that it is of."""

    phase: ProjectedPhase
    change: ProjectedChange

    @property
    def name(self) -> str:
        return _name(self.change)

    @property
    def where(self) -> str:
        """`phase 1 in sendReceiveParallel`; the calls if no function is known."""
        found = self.phase.functions or self.phase.calls
        return f"phase {self.phase.number}" + (f" in {labels.listed_briefly(found)}" if found else "")

    @property
    def basis(self) -> str:
        return BASES.get(self.change.basis, self.change.basis)


@dataclass(frozen=True)
class Best:
    """The change that saves most of a run, and the phases that it changes."""

    name: str
    where: str
    action: str
    run_speed_up: Estimate


@dataclass(frozen=True)
class Projected:
    """A projection with its title, and the changes of each phase, that which saves most of the run first."""

    title: str
    projection: Projection
    gains: Sequence[Gain]

    @property
    def best(self) -> Best | None:
        """Of the changes that make the run clearly faster; a layout and an MPI change all phases."""
        found = [
            Best(gain.name, gain.where, gain.change.action, gain.change.run_speed_up)
            for gain in self.gains
            if gain.change.kind not in OF_RUN and gain.change.run_speed_up is not None
        ]
        for one in self.projection.run_changes():
            phases = "phase" if len(one.phases) == 1 else "phases"
            where = f"{phases} {labels.listed([str(number) for number in one.phases])}"
            if one.run_speed_up is not None:
                found.append(Best(_name(one), where, one.action, one.run_speed_up))
        clear = [one for one in found if is_clearly_faster(one.run_speed_up, Estimate.exact(1.0))]
        return max(clear, key=lambda one: one.run_speed_up.value, default=None)


def _name(change: ProjectedChange | RunChange) -> str:
    """`the layout 4x1x2`, `176 to 8 messages`."""
    return f"{_KINDS.get(change.kind, '')} {change.change}".lstrip()


def projected(material: Material) -> list[Projected]:
    """The projections in the order given; those of recordings with the same name get that of their files."""
    names = [one.recording for one in material.projections]
    found = []
    for k, one in enumerate(material.projections):
        file = material.name_of("projections", k) or str(k + 1)
        of_file = f", {file}" if names.count(one.recording) > 1 else ""
        title = f"Program recorded in {one.recording}, {labels.counted(one.ranks, 'rank')}{of_file}"
        gains = [Gain(phase, change) for phase in one.phases for change in phase.changes]
        gains.sort(key=lambda gain: -(gain.change.run_speed_up or Estimate.exact(0.0)).value)
        found.append(Projected(title, one, gains))
    return found
