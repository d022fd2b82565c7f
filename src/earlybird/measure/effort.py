"""The effort of a measurement: launches, time, stop rule and limits; and remarks on them for a result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from earlybird.data import labels
from earlybird.data.clocks import doubt
from earlybird.data.collective_algorithms import VERIFICATION
from earlybird.data.errors import InputError
from earlybird.data.run_keys import MAX_LAUNCHES, MAX_SEED
from earlybird.data.units import format_seconds
from earlybird.launch.launcher import Rules
from earlybird.machine import flavours
from earlybird.measure.groups import Group, Resources, is_cold
from earlybird.measure.session import Plan, Result

# Warn if measuring takes more than this multiple of the budget.
_OVERRUN = 1.5
# A message over a slow link takes milliseconds and varies little; the interval of a median needs 6.
_LINK_MIN_ITERATIONS = 8
# Repetitions of a simulation differ only in the order of simultaneous messages; more iterations do not
# average that out.
_SIMULATED_MIN_ITERATIONS, _SIMULATED_TARGET = 3, 0.25


@dataclass(frozen=True)
class Effort:
    """The effort of a measurement; stored in run.json, so that --resume continues with the same effort."""

    launches: int
    budget_s: float
    paper: bool = False
    seed: int = 1
    time_limit_s: float = 3600.0
    stall_limit_s: float = 60.0
    min_iterations: int = Rules.min_iterations
    target: float = Rules.target

    def __post_init__(self) -> None:
        if not 1 <= self.launches <= MAX_LAUNCHES:
            raise InputError(
                f"--launches is {self.launches}; give 1 to {MAX_LAUNCHES}; useful intervals need 5 or more"
            )
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"--seed is {self.seed}; give 0 to {MAX_SEED}")
        limits = {"budget": self.budget_s, "time-limit": self.time_limit_s, "stall-limit": self.stall_limit_s}
        for name, value in limits.items():
            if value <= 0:
                raise InputError(f"--{name} is {value:g} s; give more than 0")

    def plan(self, groups: Sequence[Group]) -> Plan:
        rules = Rules(min_iterations=self.min_iterations, target=self.target)
        if self.paper:
            from scipy.special import stdtrit

            quantile = float(stdtrit(rules.paper_iterations - 1, 0.95))  # two-sided 90 %
            rules = replace(rules, mode="paper", t_quantile=quantile)
        # In the paper's mode a point is complete only after its last attempt.
        stall_limit_s = self.stall_limit_s * (1 + rules.paper_retries if self.paper else 1)
        return Plan(groups, self.launches, self.budget_s, rules, self.seed, self.time_limit_s, stall_limit_s)


def suited_to(resources: Resources, effort: Effort) -> Effort:
    """Return `effort` with fewer iterations over a virtual link, where they are slow, and in simulations,
    where they are identical."""
    if resources.family == flavours.SIMULATED:
        return replace(effort, min_iterations=_SIMULATED_MIN_ITERATIONS, target=_SIMULATED_TARGET)
    if resources.link_bytes_per_s is None:
        return effort
    return replace(effort, min_iterations=min(effort.min_iterations, _LINK_MIN_ITERATIONS))


def overrun_remark(groups: Sequence[Group], effort: Effort) -> str | None:
    """Return the remark that measuring `groups` takes longer than its budget allows; None if it fits."""
    least_s = effort.plan(groups).least_s()
    if least_s <= _OVERRUN * effort.budget_s:
        return None
    emptied = any(is_cold(point) for group in groups for point in group.points)
    return (
        f"measuring takes at least {format_seconds(least_s)}, more than the budget of "
        f"{format_seconds(effort.budget_s)}: every point gets one launch in any case"
        + (", and emptying the caches before each iteration takes long" if emptied else "")
    )


def remarks_on(result: Result, effort: Effort, remedy: str) -> list[str]:
    """Return the remarks on the samples that a user must see; `remedy` is how to measure what is missing."""
    remarks = []
    if result.missing:
        remarks.append(
            f"the budget ran out with {labels.counted(result.missing, 'sample')} not measured, so intervals "
            f"are wider than necessary{remedy}"
        )
    if not effort.paper and result.spent_s > _OVERRUN * effort.budget_s:
        remarks.append(
            f"measuring took {format_seconds(result.spent_s)} with a budget of "
            f"{format_seconds(effort.budget_s)}: every point gets one launch in any case; measure fewer "
            "points, or raise --budget"
        )
    oversubscribed = sum(sample.oversubscribed for sample in result.samples)
    if oversubscribed:
        remarks.append(
            f"{oversubscribed} samples had more ranks or threads than cores (oversubscribed): "
            "their times include scheduling delays"
        )
    if clock_warning := doubt(result.samples):
        remarks.append(clock_warning)
    # As the progress counts: without those that only show the tree of an algorithm.
    timed = [sample for sample in result.samples if sample.quantity != VERIFICATION]
    noisy = sum(not sample.converged for sample in timed)
    if noisy:
        rule = f"{100 * effort.target:g} % within their share of the budget"
        if effort.paper:
            rule = f"the paper's 5 % in {Rules.paper_retries} attempts"
        remarks.append(f"{noisy} of {len(timed)} samples did not converge to {rule}")
    return remarks
