"""What the checks of projected changes share: a check, their table, and profiles of the virtual cluster."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import earlybird, say
from earlybird.data import labels
from earlybird.data.projection import ProjectedChange
from earlybird.data.schema import Estimate
from earlybird.models.statistics import median_interval
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.render.terminal import print_rows

NEAR = 0.15
# What settings look like in the action of a change.
_SETTING = re.compile(r"\b([A-Z][A-Z0-9]*_[A-Za-z0-9_]+)=(\S+)")


@dataclass(frozen=True)
class Check:
    """A projected speed-up and what was measured.

    Attributes
    ----------
    kind : one of `data.projection.KINDS`.
    measured : the speed-up, with the interval of its median.
    """

    kind: str
    mpi: str
    case: str
    projected: Estimate
    measured: Estimate

    @property
    def off(self) -> float:
        return self.projected.value / self.measured.value - 1

    @property
    def is_near(self) -> bool:
        return abs(self.off) <= NEAR

    @property
    def is_inside(self) -> bool:
        return self.projected.low <= self.measured.value <= self.projected.high

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind, "mpi": self.mpi, "case": self.case}
        for name, value in (("projected", self.projected), ("measured", self.measured)):
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        return found | {"off": self.off, "inside": self.is_inside}


def settings_of(change: ProjectedChange) -> dict[str, str]:
    """The environment variables that its action names; empty if there are none."""
    return dict(_SETTING.findall(change.action))


def measured_speed_up(rounds: int, plain_s: Callable[[], float], changed_s: Callable[[], float]) -> Estimate:
    """The median ratio of the two times, with its interval; each round runs both, in alternating order."""
    ratios = []
    for k in range(rounds):
        runs = [plain_s, changed_s]
        times_s = {}
        for number in (0, 1) if k % 2 == 0 else (1, 0):
            times_s[number] = runs[number]()
        ratios.append(times_s[0] / times_s[1])
    return Estimate(float(np.median(ratios)), *median_interval(np.array(ratios)))


def fitted_profile(
    folder: Path, cluster: str, mpi: str, name: str, suites: Mapping[str, Sequence[Any]]
) -> Path:
    """The profile of `suites`, each a budget and options of `measure`; measured on the first call.

    A run without a profile is one that was interrupted, and measured again.
    """
    profile = folder / f"{mpi}-{name}.json"
    if not profile.exists():
        say(f"{mpi}: measuring the cluster for {name}")
        runs = []
        for suite, (budget, *options) in suites.items():
            runs.append(folder / f"{mpi}-{name}-{suite}")
            shutil.rmtree(runs[-1], ignore_errors=True)
            earlybird(
                "measure", suite, "--quick", "--launches", 3, "--budget", budget, *options, "--mpi", mpi,
                "--launcher", f"cluster:{cluster}", "--quiet", "-o", runs[-1],
            )  # fmt: skip
        earlybird("fit", *runs, "-o", profile)
    return profile


def announce(check: Check) -> None:
    """A line while the others are still to come."""
    say(
        f"{check.kind}, {check.mpi}, {check.case}: projected {ratio_text(check.projected.value)}, measured "
        f"{ratio_text(check.measured.value)}"
    )


def report(found: Sequence[Check], what: str) -> None:
    """Print all checks and how many agree; `what` has the speed-up."""
    print(f"\nspeed-up of {what} by a change: projected, and measured with the change applied")
    header = ["change", "MPI", "case", "projected", "95 %", "measured", "interval", "off", "inside"]
    rows = [
        [
            one.kind, one.mpi, one.case, ratio_text(one.projected.value),
            interval_text(one.projected, ratio_text), ratio_text(one.measured.value),
            interval_text(one.measured, ratio_text), f"{100 * one.off:+.0f} %",
            "yes" if one.is_inside else "no",
        ]
        for one in found
    ]  # fmt: skip
    print_rows(header, rows, left=header[:3])
    for kind in dict.fromkeys(one.kind for one in found):
        alike = [one for one in found if one.kind == kind]
        near = sum(one.is_near for one in alike)
        inside = sum(one.is_inside for one in alike)
        print(
            f"{kind}: at most {labels.percent(NEAR)} off in {near} of {len(alike)}, measured value inside "
            f"the interval in {inside} of {len(alike)}"
        )
