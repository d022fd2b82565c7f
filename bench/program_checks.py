"""What the checks of changed programs share: a check, their tables, and profiles of the virtual cluster."""

import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.commands import earlybird, say
from earlybird.data import labels
from earlybird.data.schema import Estimate
from earlybird.data.speed_ups import is_unknown
from earlybird.models.statistics import median_interval
from earlybird.present.core.notation import interval_text, ratio_text
from earlybird.present.render.terminal import print_rows

# Checks in which the run changes by this or more count for the error of the speed-up.
MIN_CHANGE = 0.15
LAUNCHES = 5  # of profiles
_GOOD = 0.10
# What settings look like in the action of a change.
_SETTING = re.compile(r"\b([A-Z][A-Z0-9]*_[A-Za-z0-9_]+)=(\S+)")


@dataclass(frozen=True)
class Check:
    """A predicted speed-up of a run, and what was measured.

    Attributes
    ----------
    kind : what was changed.
    predicted : the speed-up with its 95 % interval.
    measured : the speed-up, with the interval of its median.
    as_recorded_error : relative error of the simulation as recorded, with its sign.
    condition : which table it belongs to.
    """

    kind: str
    mpi: str
    case: str
    predicted: Estimate
    measured: Estimate
    as_recorded_error: float
    condition: str = ""

    @property
    def off(self) -> float:
        return self.predicted.value / self.measured.value - 1

    @property
    def is_changed(self) -> bool:
        """True if the run takes 15 % less or more with the change."""
        return abs(math.log(self.measured.value)) >= math.log(1 + MIN_CHANGE)

    @property
    def is_known(self) -> bool:
        """True if a speed-up is printed: its interval says something."""
        return not is_unknown(self.predicted)

    @property
    def is_inside(self) -> bool:
        """True if the interval holds: it contains the measured speed-up, up to the noise of that."""
        return self.predicted.low <= self.measured.high and self.predicted.high >= self.measured.low

    @property
    def width(self) -> float:
        """The upper end of the interval over the lower one, less 1."""
        return self.predicted.high / self.predicted.low - 1

    @property
    def contains_median(self) -> bool:
        return self.predicted.low <= self.measured.value <= self.predicted.high

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "condition": self.condition, "kind": self.kind, "mpi": self.mpi, "case": self.case,
        }  # fmt: skip
        for name, value in (("predicted", self.predicted), ("measured", self.measured)):
            found |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        return found | {
            "as_recorded_error": self.as_recorded_error, "off": self.off,
            "changed": self.is_changed, "known": self.is_known,
            "contains_median": self.contains_median, "inside": self.is_inside,
        }  # fmt: skip


def settings_of(action: str) -> dict[str, str]:
    """The environment variables that an action names; empty if there are none."""
    return dict(_SETTING.findall(action))


def measured_times_s(
    rounds: int, plain_s: Callable[[], float], changed_s: Callable[[], float]
) -> list[tuple[float, float]]:
    """The plain and changed time of each round, which runs both, in alternating order."""
    pairs = []
    for k in range(rounds):
        if k % 2:
            changed = changed_s()
            pairs.append((plain_s(), changed))
        else:
            plain = plain_s()
            pairs.append((plain, changed_s()))
    return pairs


def speed_up_of(times_s: Sequence[Sequence[float]]) -> Estimate:
    """The median ratio of the plain and the changed times, with its interval."""
    ratios = np.array([plain / changed for plain, changed in times_s])
    return Estimate(float(np.median(ratios)), *median_interval(ratios))


def measured_speed_up(rounds: int, plain_s: Callable[[], float], changed_s: Callable[[], float]) -> Estimate:
    return speed_up_of(measured_times_s(rounds, plain_s, changed_s))


def fitted_profile(
    folder: Path, cluster: Callable[[], str], mpi: str, name: str, suites: Mapping[str, Sequence[Any]]
) -> Path:
    """The profile of `suites`, each a budget and options of `measure`, after its name perhaps more that tells
    two of them apart; measured on the first call, on the cluster whose name is returned.

    A run without a profile is one that was interrupted, and measured again.
    """
    profile = folder / f"{mpi}-{name}.json"
    if not profile.exists():
        say(f"{mpi}: measuring the cluster for {name}")
        runs = []
        for suite, (budget, *options) in suites.items():
            runs.append(folder / f"{mpi}-{name}-{suite.replace(' ', '-')}")
            shutil.rmtree(runs[-1], ignore_errors=True)
            earlybird(
                "measure", suite.partition(" ")[0], "--quick", "--launches", LAUNCHES, "--budget", budget,
                *options, "--mpi", mpi, "--launcher", f"cluster:{cluster()}", "--quiet", "-o", runs[-1],
            )  # fmt: skip
        earlybird("fit", *runs, "-o", profile)
    return profile


def announce(check: Check) -> None:
    """A line while the others are still to come."""
    say(
        f"{check.kind}, {check.mpi}, {check.case}: predicted {ratio_text(check.predicted.value)}, measured "
        f"{ratio_text(check.measured.value)}, as recorded {labels.signed_percent(check.as_recorded_error)}"
    )


def report(found: Sequence[Check]) -> None:
    """Print all checks, and for each condition how well they agree."""
    print("\nspeed-up of the run by a change: simulated, and measured with the change made")
    header = ["change", "MPI", "case", "as recorded", "predicted", "95 %", "measured", "interval", "off",
              "holds"]  # fmt: skip
    rows = [
        [
            one.kind, one.mpi, one.case, labels.signed_percent(one.as_recorded_error),
            ratio_text(one.predicted.value) if one.is_known else "unknown",
            interval_text(one.predicted, ratio_text),
            ratio_text(one.measured.value), interval_text(one.measured, ratio_text),
            labels.signed_percent(one.off),
            "yes" if one.contains_median else "overlaps" if one.is_inside else "no",
        ]
        for one in found
    ]  # fmt: skip
    print_rows(header, rows, left=header[:3])
    for condition in dict.fromkeys(one.condition for one in found):
        print(summary(condition, [one for one in found if one.condition == condition]))


def summary(condition: str, checks: Sequence[Check]) -> str:
    """How far the simulation as recorded is off, how far known speed-ups are off where the run changes by
    15 % or more, and how often intervals hold."""
    recorded = [abs(one.as_recorded_error) for one in checks]
    offs = sorted(abs(one.off) for one in checks if one.is_changed and one.is_known)
    num, num_unknown = len(checks), sum(not one.is_known for one in checks)
    text = (
        f"{condition}: as recorded off by {labels.percent(float(np.median(recorded)))} in the median, worst "
        f"{labels.percent(max(recorded))}; in {len(offs)} of {num} the run changes by "
        f"{labels.percent(MIN_CHANGE)} or more and the speed-up is known"
    )
    if offs:
        text += (
            f": off by {labels.percent(float(np.median(offs)))} in the median, by {labels.percent(_GOOD)} or "
            f"less in {sum(off <= _GOOD for off in offs)}, nine of ten by "
            f"{labels.percent(offs[-(-9 * len(offs) // 10) - 1])} at most, worst {labels.percent(offs[-1])}"
        )
    return (
        f"{text}; the 95 % interval contains the measured median in "
        f"{sum(one.contains_median for one in checks)} of {num} and overlaps its interval in "
        f"{sum(one.is_inside for one in checks)}, its ends are "
        f"{labels.percent(float(np.median([one.width for one in checks])))} apart in the median; unknown: "
        f"{num_unknown}"
    )
