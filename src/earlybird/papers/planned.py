"""Plans what is measured of a paper with each MPI, and estimates how long that takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from earlybird.data import labels
from earlybird.data.mpi_settings import split_settings
from earlybird.data.units import format_seconds
from earlybird.launch.launcher import Launcher
from earlybird.measure.effort import Effort, suited_to
from earlybird.measure.groups import Options, Resources
from earlybird.measure.launchers import Note, make_launcher
from earlybird.measure.planned import check_groups, refuse_kernels
from earlybird.papers.paper import Paper, Step


@dataclass(frozen=True)
class PlannedPaper:
    """The planned measurements of one MPI, stored in one folder."""

    folder: Path
    launcher: Launcher
    resources: Resources
    steps: Sequence[Step]

    @property
    def num_points(self) -> int:
        return sum(len(group.points) for step in self.steps for group in step.groups)

    def effort_of(self, step: Step, effort: Effort) -> Effort:
        """Return how hard to measure a step: with its share of the time for this MPI."""
        share = step.share / sum(each.share for each in self.steps)
        return suited_to(self.resources, replace(effort, budget_s=effort.budget_s * share))

    def duration_s(self, effort: Effort) -> float:
        """Return about how long it takes: each step its budget, or one launch of every point if that takes
        longer."""
        of_steps = ((step, self.effort_of(step, effort)) for step in self.steps)
        return sum(max(of_step.budget_s, of_step.plan(step.groups).least_s()) for step, of_step in of_steps)


def plan_paper(
    paper: Paper,
    folder: Path,
    settings: Mapping[str, Any],
    options: Options,
    mpi: str,
    seed: int,
    note: Note,
) -> PlannedPaper:
    """Return what is measured of `mpi`, "" for the default; InputError if it cannot be."""
    launcher, resources = make_launcher({**settings, "mpi": mpi or None}, seed, note)
    steps = paper.plan(options, resources, launcher.flavour)
    groups = [group for step in steps for group in step.groups]
    refuse_kernels([group.kernel for group in groups], launcher, settings["launcher"])
    nothing = f"{paper.name} has no points with {launcher.flavour} and these options; give other options or "
    check_groups(groups, launcher, nothing + "another --mpi")
    for remark in dict.fromkeys(paper.remarks(options, resources)):
        note(f"{labels.flavour(launcher.flavour)}: {remark}")
    return PlannedPaper(folder / _folder_name(launcher.flavour), launcher, resources, steps)


def _folder_name(mpi: str) -> str:
    """Return a name of a folder for an MPI, which may be the path of a compiler."""
    name, _ = split_settings(mpi)
    return name.strip("/").replace("/", "-")


def estimate(planned: Sequence[PlannedPaper], effort: Effort) -> str:
    """Return one sentence on what is measured and how long it takes; drawn times take none."""
    points = labels.counted(sum(one.num_points for one in planned), "point")
    launches = labels.counted(effort.launches, "launch", "launches")
    if all(one.launcher.name == "synthetic" for one in planned):
        return f"drawing times of {points} from a profile, in {launches} (continue it with --resume)"
    budget_s, duration_s = effort.budget_s * len(planned), sum(one.duration_s(effort) for one in planned)
    takes = f"about {format_seconds(budget_s)} (change it with --budget"
    if duration_s > 1.05 * budget_s:
        takes = (
            f"about {format_seconds(duration_s)}, more than the budget of {format_seconds(budget_s)}, "
            "because every point gets one launch in any case (measure more with --budget"
        )
    mpis = labels.listed([labels.flavour(one.launcher.flavour) for one in planned])
    return (
        f"measuring {points} of {mpis} in up to {launches}, which takes {takes}, continue it with --resume)"
    )
